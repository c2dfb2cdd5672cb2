"""The tables of a ledger. Names and types here are the format on disk: `FORMAT` grows with any change to them.

A change to them comes with a numbered step in `opening`, which brings older ledgers up to date when they are opened.

Nothing is ever deleted. `journal`, `charges`, `departures` and the entries of `segments` only grow; `cohorts` and
`reservations` hold the present, which must be what the journal adds up to. A cohort that everybody left goes over to
`emptied`, for the sake of the past: a question reads and writes all of `cohorts`, which stay few and close together
whatever years bring.
"""

FORMAT = 7

# `floor` is what anybody may have been charged in parts that are lost, -1 where that is not known; `witness` who keeps
# the head, as JSON; `state` whether the ledger is closed.
LEDGER = """
CREATE TABLE ledger (
    one INTEGER NOT NULL CHECK (one = 1), id TEXT NOT NULL, format INTEGER NOT NULL, epoch INTEGER NOT NULL,
    neighbors TEXT, rows_per_person INTEGER, allow_individual INTEGER, salt BLOB, losses INTEGER,
    measure TEXT, ids TEXT, spelling TEXT, digest TEXT, floor INTEGER, witness TEXT, state TEXT,
    PRIMARY KEY (one)
) STRICT"""

JOURNAL = """
CREATE TABLE journal (
    seq INTEGER NOT NULL, kind TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL,
    PRIMARY KEY (seq)
) STRICT"""

# What levels mean, since which line of the journal; the newest line of a name holds. Public: null.
LEVELS = """
CREATE TABLE levels (
    name TEXT NOT NULL, seq INTEGER NOT NULL, granted INTEGER,
    PRIMARY KEY (name, seq)
) STRICT"""

# Every registration of a dataset, whose own number is that of its first one. `about` is what was settled, `stamp` where
# its rows are and how they are known again, both as JSON. The newest registration of a dataset is the one asked.
REGISTRATIONS = """
CREATE TABLE registrations (
    number INTEGER NOT NULL, dataset INTEGER NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL, at TEXT NOT NULL, about TEXT NOT NULL, stamp TEXT NOT NULL,
    PRIMARY KEY (number)
) STRICT"""

BY_NAME = "CREATE INDEX by_name ON registrations (name, number)"

# `level` is the name of what was granted, where it has one; `own` says that it is people's own word; `datasets` has the
# datasets whose roster they are on with what each source last said of them, as JSON: only those datasets charge them.
# `ceiling` is the larger of the grant and what was gone when the cohort was made: a grant tightened below what was
# spent stands as it is, and nothing can ever be added to it.
_COHORT = """
CREATE TABLE {name} (
    id INTEGER NOT NULL, granted INTEGER CHECK (granted >= 0), spent INTEGER NOT NULL CHECK (spent >= 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0), ceiling INTEGER NOT NULL,
    people INTEGER NOT NULL CHECK (people >= 0), state TEXT NOT NULL, level TEXT,
    own INTEGER DEFAULT '0' NOT NULL, datasets TEXT DEFAULT '{{}}' NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT within_ceiling CHECK (spent + reserved <= ceiling)
) STRICT"""
COHORTS, EMPTIED = (_COHORT.format(name=name) for name in ("cohorts", "emptied"))

# Who joined or moved, by which line of the journal, to which cohort: see `segments`. `first` is a part's first digest,
# `newest` the last line that it has entries of, `content` its columns one after the other.
SEGMENTS = """
CREATE TABLE segments (
    segment INTEGER NOT NULL, part INTEGER NOT NULL, first BLOB NOT NULL, newest INTEGER NOT NULL,
    entries INTEGER NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (segment, part)
) STRICT"""

# Which cohorts everybody left at once, by which line of the journal, and for which: see `departures`.
DEPARTURES = """
CREATE TABLE departures (
    line INTEGER NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (line)
) STRICT"""

RESERVATIONS = """
CREATE TABLE reservations (
    number INTEGER NOT NULL, "key" BLOB NOT NULL, state TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
    individual INTEGER NOT NULL, epoch INTEGER NOT NULL, at TEXT NOT NULL, description TEXT NOT NULL,
    answer BLOB, analyst TEXT, dataset INTEGER, question BLOB,
    PRIMARY KEY (number),
    CONSTRAINT stored_has_answer CHECK ((state = 'stored') = (answer IS NOT NULL))
) STRICT"""

# At most one live reservation, and so at most one stored answer, for each question.
ONE_PER_KEY = """
CREATE UNIQUE INDEX one_per_key ON reservations ("key") WHERE state <> 'refunded' AND state <> 'lost'"""
INDIVIDUAL = "CREATE INDEX individual ON reservations (number) WHERE individual = 1"
# Charges that may still be given back.
PENDING = "CREATE INDEX pending ON reservations (number) WHERE state = 'reserved'"
# The same question again, whatever has become of the roster since.
BY_QUESTION = "CREATE INDEX by_question ON reservations (question)"

# Whom a question uses, at which of its plan's levels, and what they pay: nothing if they are public. `carried`: the
# charge came along with people who moved while the reservation was open, and has no level.
CHARGES = """
CREATE TABLE charges (
    number INTEGER NOT NULL, cohort INTEGER NOT NULL, nano INTEGER NOT NULL CHECK (nano >= 0), carried INTEGER NOT NULL,
    level INTEGER,
    PRIMARY KEY (number, cohort)
) WITHOUT ROWID, STRICT"""

# For fairness between analysts only: what each of them used, and at most may use where a quota is set.
QUOTAS = """
CREATE TABLE quotas (
    analyst TEXT NOT NULL, nano INTEGER, questions INTEGER, used_nano INTEGER NOT NULL, used_questions INTEGER NOT NULL,
    PRIMARY KEY (analyst)
) STRICT"""

ALL = (
    LEDGER, JOURNAL, LEVELS, REGISTRATIONS, BY_NAME, COHORTS, EMPTIED, SEGMENTS, DEPARTURES,
    RESERVATIONS, ONE_PER_KEY, INDIVIDUAL, PENDING, BY_QUESTION, CHARGES, QUOTAS,
)  # fmt: skip
