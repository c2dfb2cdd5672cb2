"""The tables of a ledger. Names and types here are the format on disk: `FORMAT` grows with any change to them.

A change to them comes with a numbered step in `opening`, which brings older ledgers up to date when they are opened.

Nothing is ever deleted. `journal`, `charges` and the entries of `segments` only grow; `cohorts` and `reservations` hold
the present, which must be what the journal adds up to.
"""

from typing import Any

from sqlalchemy import CheckConstraint, Column, Index, LargeBinary, MetaData, Table, Text, text

from epsilons.storage.base import Whole, number, optional, required

FORMAT = 4

metadata = MetaData()


def _table(name: str, *parts: Column[Any] | CheckConstraint, **options: Any) -> Table:
    return Table(name, metadata, *parts, sqlite_strict=True, **options)


ledger = _table(
    "ledger",
    number("one", CheckConstraint("one = 1")),
    *required(id=Text, format=Whole, epoch=Whole),
    *optional(neighbors=Text, rows_per_person=Whole, allow_individual=Whole, salt=LargeBinary, losses=Whole),
    *optional(measure=Text, ids=Text, spelling=Text, digest=Text),
)
journal = _table("journal", number("seq"), *required(kind=Text, at=Text, body=Text, hash=Text))

# What levels mean, since which line of the journal; the newest line of a name holds. Public: null.
levels = _table("levels", Column("name", Text, primary_key=True), number("seq"), *optional(granted=Whole))

# Every registration of a dataset, whose own number is that of its first one. `about` is what was settled, `stamp` where
# its rows are and how they are known again, both as JSON. The newest registration of a dataset is the one asked.
registrations = _table(
    "registrations",
    number("number"),
    *required(dataset=Whole, name=Text, version=Text, seq=Whole, epoch=Whole, at=Text, about=Text, stamp=Text),
)

# `level` is the name of what was granted, where it has one; `own` says that it is people's own word; `datasets` has the
# datasets whose roster they are on with what each source last said of them, as JSON: only those datasets charge them.
# `ceiling` is the larger of the grant and what was gone when the cohort was made: a grant tightened below what was
# spent stands as it is, and nothing can ever be added to it.
cohorts = _table(
    "cohorts",
    number("id"),
    Column("granted", Whole, CheckConstraint("granted >= 0")),
    Column("spent", Whole, CheckConstraint("spent >= 0"), nullable=False),
    Column("reserved", Whole, CheckConstraint("reserved >= 0"), nullable=False),
    Column("ceiling", Whole, nullable=False),
    Column("people", Whole, CheckConstraint("people >= 0"), nullable=False),
    Column("state", Text, nullable=False),
    Column("level", Text),
    Column("own", Whole, nullable=False, server_default="0"),
    Column("datasets", Text, nullable=False, server_default="{}"),
    CheckConstraint("spent + reserved <= ceiling", name="within_ceiling"),
)

# Who joined or moved, by which line of the journal, to which cohort: see `segments`. `first` is a part's first digest,
# `newest` the last line that it has entries of, `content` its columns one after the other.
segments = _table(
    "segments",
    number("segment"),
    number("part"),
    *required(first=LargeBinary, newest=Whole, entries=Whole, content=LargeBinary),
)
reservations = _table(
    "reservations",
    number("number"),
    *required(key=LargeBinary, state=Text, seq=Whole, kind=Text),
    *required(individual=Whole, epoch=Whole, at=Text, description=Text),
    *optional(answer=LargeBinary, analyst=Text, dataset=Whole, question=LargeBinary),
    CheckConstraint("(state = 'stored') = (answer IS NOT NULL)", name="stored_has_answer"),
)

# At most one live reservation, and so at most one stored answer, for each question.
_live = text("state <> 'refunded' AND state <> 'lost'")
Index("one_per_key", reservations.c.key, unique=True, sqlite_where=_live, postgresql_where=_live)
_marking = text("individual = 1")
Index("individual", reservations.c.number, sqlite_where=_marking, postgresql_where=_marking)

# The same question again, whatever has become of the roster since.
Index("by_question", reservations.c.question)

# `carried`: the charge came along with people who moved while the reservation was open.
charges = _table(
    "charges",
    number("number"),
    number("cohort"),
    Column("nano", Whole, CheckConstraint("nano > 0"), nullable=False),
    Column("carried", Whole, nullable=False),
)

# For fairness between analysts only: what each of them used, and at most may use where a quota is set.
quotas = _table(
    "quotas",
    Column("analyst", Text, primary_key=True),
    *optional(nano=Whole, questions=Whole),
    *required(used_nano=Whole, used_questions=Whole),
)
