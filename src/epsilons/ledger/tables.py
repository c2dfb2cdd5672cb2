"""The tables of a ledger. Names and types here are the format on disk: `FORMAT` grows with any change to them.

A change to them comes with a numbered step in `opening`, which brings older ledgers up to date when they are opened.

Nothing is ever deleted. `journal`, `moves` and `charges` only grow; `cohorts`, `people` and `reservations` hold the
present, which must be what the journal adds up to.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, LargeBinary, MetaData, Table, Text, text

FORMAT = 2

metadata = MetaData()

# SQLite's own integers have 64 bits, and its strict tables know no other name for them.
Whole = BigInteger().with_variant(Integer(), "sqlite")


def _table(name: str, *parts: Column[Any] | CheckConstraint, **options: Any) -> Table:
    return Table(name, metadata, *parts, sqlite_strict=True, **options)


ledger = _table(
    "ledger",
    Column("one", Whole, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("format", Whole, nullable=False),
    Column("epoch", Whole, nullable=False),
    Column("neighbors", Text),
    Column("rows_per_person", Whole),
    Column("allow_individual", Whole),
    Column("salt", LargeBinary),
    Column("losses", Whole),
)

journal = _table(
    "journal",
    Column("seq", Whole, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

# `ceiling` is the larger of the grant and what was gone when the cohort was made: a grant tightened below what was
# spent stands as it is, and nothing can ever be added to it.
cohorts = _table(
    "cohorts",
    Column("id", Whole, primary_key=True, autoincrement=False),
    Column("granted", Whole, CheckConstraint("granted >= 0")),
    Column("spent", Whole, CheckConstraint("spent >= 0"), nullable=False),
    Column("reserved", Whole, CheckConstraint("reserved >= 0"), nullable=False),
    Column("ceiling", Whole, nullable=False),
    Column("people", Whole, CheckConstraint("people >= 0"), nullable=False),
    Column("state", Text, nullable=False),
    CheckConstraint("spent + reserved <= ceiling", name="within_ceiling"),
)

people = _table(
    "people",
    Column("digest", LargeBinary, primary_key=True),
    Column("cohort", Whole, nullable=False),
    Column("joined", Whole, nullable=False),
    sqlite_with_rowid=False,
)

moves = _table(
    "moves",
    Column("digest", LargeBinary, primary_key=True),
    Column("seq", Whole, primary_key=True, autoincrement=False),
    Column("origin", Whole, nullable=False),
    Column("target", Whole, nullable=False),
    sqlite_with_rowid=False,
)

reservations = _table(
    "reservations",
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("key", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("seq", Whole, nullable=False),
    Column("kind", Text, nullable=False),
    Column("individual", Whole, nullable=False),
    Column("epoch", Whole, nullable=False),
    Column("at", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("answer", LargeBinary),
    Column("analyst", Text),
    CheckConstraint("(state = 'stored') = (answer IS NOT NULL)", name="stored_has_answer"),
)

# At most one live reservation, and so at most one stored answer, for each question.
_live = text("state <> 'refunded' AND state <> 'lost'")
Index("one_per_key", reservations.c.key, unique=True, sqlite_where=_live, postgresql_where=_live)
_marking = text("individual = 1")
Index("individual", reservations.c.number, sqlite_where=_marking, postgresql_where=_marking)

# `carried`: the charge came along with people who moved while the reservation was open.
charges = _table(
    "charges",
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("cohort", Whole, primary_key=True, autoincrement=False),
    Column("nano", Whole, CheckConstraint("nano > 0"), nullable=False),
    Column("carried", Whole, nullable=False),
)

# For fairness between analysts only: what each of them used, and at most may use where a quota is set.
quotas = _table(
    "quotas",
    Column("analyst", Text, primary_key=True),
    Column("nano", Whole),
    Column("questions", Whole),
    Column("used_nano", Whole, nullable=False),
    Column("used_questions", Whole, nullable=False),
)
