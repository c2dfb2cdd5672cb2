"""Ways to declare the same people anew, to a ledger in which everyone's budget is spent.

An attempt is a function of a world which has spent everything. It is held if it is refused in our own words, or if
what it opens has nothing left but what people have granted since, by their own word or an act that names their number.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

import epsilons as eps
from epsilons.cli import app
from epsilons.errors import BudgetExceeded, EpsilonsError, LedgerError
from epsilons.guarantee import NANO

PEOPLE = 20
LEVELS = {"strict": 0.5, "open": 1.0}
NAMES = [f"Zoë Ångström-{number:02}" for number in range(PEOPLE)]
NUMBERS = list(range(1, PEOPLE + 1))

FILE = """
name = "wages"
source = "wages.parquet"
person = "id"
version = "1"
ledger = "sqlite:///wages.ledger"

[preferences]
column = "privacy"
levels = { strict = 0.5, open = 1 }
"""


def table(ids: Sequence[Any], wage: float = 10.0) -> pa.Table:
    """People with an id, two other columns that would do as one, a level and a wage."""
    count = len(ids)
    return pa.table(
        {
            "id": ids,
            "row": list(range(1000, 1000 + count)),
            "account": [f"account {number}" for number in range(count)],
            "privacy": ["strict" if number % 2 else "open" for number in range(count)],
            "wage": [wage + number for number in range(count)],
        }
    )


@dataclass(frozen=True)
class World:
    """A folder with a source, its file, its ledger, and copies of what was there before; and a user's state."""

    root: Path
    ids: Sequence[Any]

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def ledger(self) -> Path:
        return self.home / "wages.ledger"

    @property
    def source(self) -> Path:
        return self.home / "wages.parquet"

    @property
    def address(self) -> str:
        return f"sqlite:///{self.ledger}"

    def write(self, ids: Sequence[Any], wage: float = 10.0) -> None:
        pa.parquet.write_table(table(ids, wage), self.source)

    def register(self, source: Any = None, **more: Any) -> eps.Dataset:
        """As at first, but for what is said; without a source from the file, under a new label."""
        levels = more.pop("levels", LEVELS)
        told: dict[str, Any] = {
            "name": "wages", "person": "id", "ledger": self.address, "version": "2",
            "preferences": eps.Preferences.from_levels("privacy", levels), **more,
        }  # fmt: skip
        return eps.Dataset.register(str(self.source) if source is None else source, **told)

    def open(self, name: str = "wages", ledger: str | None = None) -> eps.Dataset:
        return eps.Dataset.open(name, ledger=ledger or self.address)

    def toml(self, old: str = "", new: str = "") -> Path:
        path = self.home / "people.toml"
        assert old in FILE
        path.write_text(FILE.replace(old, new) if old else FILE)
        return path

    def command(self, *arguments: str) -> None:
        """A command of this process; raises what it says if it fails."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = app.main(list(arguments))
        if status:
            raise LedgerError(said.getvalue())

    @contextlib.contextmanager
    def inside(self, folder: Path) -> Iterator[None]:
        before = os.getcwd()
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)

    def remove_ledger(self) -> None:
        for path in self.home.glob("wages.ledger*"):
            if path.is_file():
                path.unlink()

    def snapshot(self, name: str = "wages") -> Path:
        with self.open(name) as found:
            return Path(found._registry.registration.stamp["folder"])


def make_world(root: Path, ids: Sequence[Any]) -> World:
    """Registered twice, with a second table of the same people in the same ledger; then everything is spent."""
    world = World(root, ids)
    world.home.mkdir(parents=True)
    world.write(ids, 5.0)
    world.register(version="0").close()
    shutil.copytree(world.snapshot(), world.home / "snapshot before")
    world.write(ids)
    world.register(version="1").close()
    world.register(table(ids, 30.0), name="health", version="1").close()
    world.toml()
    shutil.copy2(world.ledger, world.home / "ledger before")
    with world.open() as people:
        people.count(share=1)
        assert left_of(people) == 0
    return world


def left_of(people: eps.Dataset) -> float:
    """What all people of a ledger have left together."""
    here = (cohort for cohort in people.ledger.cohorts() if cohort.state == "active" and cohort.granted is not None)
    return sum(max(0, one.granted - one.spent - one.reserved) * one.people for one in here if one.granted) / NANO


@dataclass(frozen=True)
class Outcome:
    """What an attempt came to: what it was told, or what it has left; and how its ledger does not add up, if so."""

    said: str | None
    left: float = 0.0
    differs: str | None = None


def outcome(attempt: Callable[[World], eps.Dataset], world: World) -> Outcome:
    """Try, and ask if that is possible. Whatever is not one of our own errors is a fault."""
    try:
        found = attempt(world)
    except EpsilonsError as refused:
        return Outcome(str(refused))
    with found:
        left = left_of(found)
        with contextlib.suppress(BudgetExceeded):
            found.sum("wage", bounds=(0, 100), share=1)
            assert left > 0, "answered though nobody had anything left"
        try:
            found.ledger.verify()
        except LedgerError as differs:
            return Outcome(None, left, str(differs))
        return Outcome(None, left)


@dataclass(frozen=True)
class Attempt:
    """`refused` are words of the refusal; else what may be left: of what people granted since."""

    name: str
    run: Callable[[World], eps.Dataset]
    refused: str | None = None
    left: float = 0.0
    ids: str = "names"

    def held(self, found: Outcome) -> bool:
        if self.refused is not None:
            return found.said is not None and self.refused in found.said
        return found.said is None and found.differs is None and abs(found.left - self.left) < 1e-9


# Spelling -----------------------------------------------------------------------------------------------------------

SPELLINGS: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "small letters": str.lower,
    "swapped case": str.swapcase,
    "a blank before": lambda one: f" {one}",
    "a blank after": lambda one: f"{one} ",
    "a tab and a new line": lambda one: f"\t{one}\n",
    "a blank that does not break": lambda one: f"\u00a0{one}",
    "accents of their own": lambda one: unicodedata.normalize("NFD", one),
    "accents of their own, in capitals, with blanks": lambda one: f" {unicodedata.normalize('NFD', one).upper()} ",
    "the sign of the unit in place of a letter": lambda one: one.replace("Å", "\u212b"),
}


def respell(change: Callable[[str], str], many: int) -> Callable[[World], eps.Dataset]:
    ids = [change(one) if number < many else one for number, one in enumerate(NAMES)]
    return lambda world: world.register(table(ids))


def full_width(text: str) -> str:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


def _spellings() -> Iterator[Attempt]:
    for name, change in SPELLINGS.items():
        yield Attempt(f"everyone in {name}", respell(change, PEOPLE))
        yield Attempt(f"two people in {name}", respell(change, 2))
    new = "are new to this ledger"
    for name, change in {
        "full width": full_width,
        "a mark before": lambda one: f"#{one}",
        "without accents": lambda one: unicodedata.normalize("NFD", one).encode("ascii", "ignore").decode(),
        "a blank of no width": lambda one: f"\u200b{one}",
    }.items():
        yield Attempt(f"everyone in {name}", respell(change, PEOPLE), new)
    twice = [*NAMES, NAMES[0].upper()]
    yield Attempt("one person twice, in two spellings", lambda world: world.register(table(twice)), "Two spellings")


# Unit ---------------------------------------------------------------------------------------------------------------


def _units() -> Iterator[Attempt]:
    settled, new, kind = (
        "'wages' was registered with other people",
        "are new to this ledger",
        "ids of another kind",
    )
    yield Attempt("another column of numbers", lambda world: world.register(person="row"), settled)
    yield Attempt("another column of texts", lambda world: world.register(person="account"), settled)
    yield Attempt("another column under another name", lambda w: w.register(name="pay", person="account"), new)
    yield Attempt("numbers under another name", lambda w: w.register(name="pay", person="row"), kind)

    def renamed(world: World, name: str) -> eps.Dataset:
        columns = ["person", *table(NAMES).column_names[1:]]
        return world.register(table(NAMES).rename_columns(columns), person="person", name=name)

    yield Attempt("the column renamed", lambda world: renamed(world, "wages"), settled)
    yield Attempt("the column renamed, under another name", lambda world: renamed(world, "pay"))
    yield Attempt("the places of ids exchanged", lambda world: world.register(table(NAMES[::-1])))
    texts, zeros = [str(one) for one in NUMBERS], [f"{one:04}" for one in NUMBERS]
    narrow = table(pa.array(NUMBERS, pa.int8())), table(pa.array(NUMBERS, pa.uint64()))
    yield Attempt("numbers as texts", lambda world: world.register(table(texts)), kind, ids="numbers")
    yield Attempt("numbers with zeros", lambda world: world.register(table(zeros)), kind, ids="numbers")
    yield Attempt("numbers as texts elsewhere", lambda w: w.register(table(texts), name="pay"), kind, ids="numbers")
    yield Attempt("numbers of eight bits", lambda world: world.register(narrow[0]), ids="numbers")
    yield Attempt("numbers without a sign", lambda world: world.register(narrow[1]), ids="numbers")
    negative = [-one for one in NUMBERS]
    yield Attempt("numbers below zero", lambda world: world.register(table(negative)), new, ids="numbers")


# Ledger -------------------------------------------------------------------------------------------------------------


def after(change: Callable[[World], Any], then: Callable[[World], eps.Dataset]) -> Callable[[World], eps.Dataset]:
    def attempt(world: World) -> eps.Dataset:
        change(world)
        return then(world)

    return attempt


def _empty(world: World) -> None:
    world.remove_ledger()
    world.ledger.touch()


def _without_tables(world: World) -> None:
    world.remove_ledger()
    with contextlib.closing(sqlite3.connect(world.ledger)) as connection:
        connection.execute("VACUUM")


def _move(world: World) -> None:
    world.ledger.rename(world.home / "elsewhere.ledger")
    world.remove_ledger()


def _put_before(world: World) -> None:
    world.remove_ledger()
    shutil.copy2(world.home / "ledger before", world.ledger)


def _put_other(world: World) -> None:
    """A ledger of other people, made on purpose, then put in place of the one that is spent."""
    strangers = [f"stranger {number}" for number in range(PEOPLE)]
    world.register(table(strangers), ledger=f"sqlite:///{world.home}/other.ledger", confirm=True).close()
    world.remove_ledger()
    (world.home / "other.ledger").rename(world.ledger)


def _relative(world: World, folder: str, ledger: str = "sqlite:///wages.ledger") -> eps.Dataset:
    with world.inside(world.home / folder):
        return world.register(ledger=ledger)


def _linked(world: World) -> eps.Dataset:
    """A link to the ledger is used, and then leads elsewhere."""
    link = world.home / "link.ledger"
    link.symlink_to(world.ledger)
    world.open(ledger=f"sqlite:///{link}").close()
    link.unlink()
    link.symlink_to(world.home / "new.ledger")
    return world.register(table(world.ids), name="pay", ledger=f"sqlite:///{link}")


def _through_a_folder(world: World) -> eps.Dataset:
    world.remove_ledger()
    (world.root / "way").symlink_to(world.home)
    return world.register(ledger=f"sqlite:///{world.root}/way/wages.ledger")


def _commands(*arguments: str) -> Callable[[World], eps.Dataset]:
    def attempt(world: World) -> eps.Dataset:
        world.command(arguments[0], str(world.home / "people.toml"), *arguments[1:])
        return world.open()

    return attempt


def _elsewhere(world: World, **more: Any) -> eps.Dataset:
    return world.register(ledger=f"sqlite:///{world.home}/second.ledger", **more)


def _in_a_process(code: str) -> Callable[[World], eps.Dataset]:
    def attempt(world: World) -> eps.Dataset:
        program = f"import sys; from pathlib import Path; from support.anew import World, NAMES\n{code}"
        given = [sys.executable, "-c", f"{program.replace('WORLD', f'World(Path({str(world.root)!r}), NAMES)')}"]
        done = subprocess.run(given, env=dict(os.environ), capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise LedgerError(done.stderr.strip().splitlines()[-1])
        return world.open()

    return attempt


def _ledgers() -> Iterator[Attempt]:
    gone, second = "The ledger that stood at this address is gone", "was registered in another ledger before"
    older, remove = "older than its last recorded state", World.remove_ledger
    losses: dict[str, Callable[[World], Any]] = {
        "deleted": remove, "emptied": _empty, "without tables": _without_tables, "moved": _move,
    }  # fmt: skip
    for name, lose in losses.items():
        yield Attempt(f"the ledger {name}, then registered", after(lose, World.register), gone)
        yield Attempt(f"the ledger {name}, then asked", after(lose, World.open), gone)
    yield Attempt("deleted, confirmed", after(remove, lambda world: world.register(confirm=True)), gone)
    yield Attempt("deleted, another name", after(remove, lambda w: w.register(table(w.ids), name="pay")), gone)
    yield Attempt("deleted, from the file", after(remove, lambda w: eps.Dataset.from_toml(w.toml())), gone)
    yield Attempt("deleted, by a command", after(remove, _commands("register", "--yes")), gone)
    yield Attempt("deleted, asked by a command", after(remove, _commands("count")), gone)
    yield Attempt("deleted, a relative path", after(remove, lambda world: _relative(world, ".")), gone)
    yield Attempt(
        "deleted, a path with dots", after(remove, lambda w: _relative(w, "sub", "sqlite:///../wages.ledger")), gone
    )
    yield Attempt("deleted, through a link to its folder", _through_a_folder, gone)
    yield Attempt("a link that leads elsewhere", _linked, gone)
    yield Attempt(
        "its folder renamed", after(lambda w: w.ledger.rename(w.home / "x"), lambda w: w.register(version="1")), gone
    )
    yield Attempt(
        "moved, and found there", after(_move, lambda w: w.open(ledger=f"sqlite:///{w.home}/elsewhere.ledger"))
    )
    yield Attempt("another working directory", lambda world: _relative(world, "elsewhere"), second)
    yield Attempt("a second ledger", _elsewhere, second)
    yield Attempt("a second ledger, another name", lambda world: _elsewhere(world, name="pay"), second)
    yield Attempt("a second ledger, another file", lambda world: _elsewhere(world, source=table(world.ids)), second)
    yield Attempt("an older copy, registered", after(_put_before, World.register), older)
    yield Attempt("an older copy, asked", after(_put_before, World.open), older)
    yield Attempt(
        "an older copy elsewhere", lambda world: world.open(ledger=f"sqlite:///{world.home}/ledger before"), older
    )
    yield Attempt("another ledger in its place", after(_put_other, World.register), "Another ledger stands")
    yield Attempt("another ledger in its place, asked", after(_put_other, World.open), "Another ledger stands")
    yield Attempt(
        "an older copy without a head",
        after(
            lambda w: (_put_before(w), [one.unlink() for one in w.root.glob("state/epsilons/ledgers/*.json")]),
            World.open,
        ),
        "head is not where it is kept",
    )
    yield Attempt("another process", _in_a_process("WORLD.register(version='2')"))
    yield Attempt("deleted, another process", after(remove, _in_a_process("WORLD.register(version='2')")), gone)


# Asking and registering again ---------------------------------------------------------------------------------------


def _notebook(world: World, ledger: Any) -> eps.Dataset:
    preferences = eps.Preferences.from_levels("privacy", LEVELS)
    return eps.Dataset(str(world.source), person="id", preferences=preferences, ledger=ledger)


def _from_file(old: str, new: str) -> Callable[[World], eps.Dataset]:
    return lambda world: eps.Dataset.from_toml(world.toml(old, new))


def _versions() -> Iterator[Attempt]:
    reused = "is registered already, and the source may hold other rows"
    yield Attempt("a table with an address", lambda w: _notebook(w, w.address), "is registered once, and then opened")
    yield Attempt("a table without a ledger", lambda w: _notebook(w, None), "is registered once, and then opened")
    yield Attempt("the same again", lambda world: world.register(version="1"))
    yield Attempt("a new label", World.register)
    yield Attempt("no label", lambda world: world.register(version=None))
    yield Attempt("a label of before", lambda world: world.register(version="0"), reused)
    yield Attempt("a used label, another table", lambda w: w.register(table(w.ids, 20.0), version="1"), reused)
    replaced = after(lambda w: w.write(w.ids, 20.0), lambda w: w.register(version="1"))
    yield Attempt("a used label, the file replaced", replaced, reused)
    yield Attempt("a new label, the file replaced", after(lambda w: w.write(w.ids, 20.0), World.register))
    yield Attempt("asked with the file replaced", after(lambda w: w.write(w.ids, 20.0), World.open))
    yield Attempt("asked with the file deleted", after(lambda w: w.source.unlink(), World.open))
    yield Attempt("another name, the same file", lambda world: world.register(name="pay"))
    yield Attempt("another name, another table", lambda world: world.register(table(world.ids), name="pay"))
    yield Attempt("the other table of the ledger", lambda world: world.open("health"))
    yield Attempt("a file through a link", lambda world: _link_source(world))
    yield Attempt("a dataset of another name, asked", lambda world: world.open("pay"), "No dataset is registered as")
    other = "says something else than was registered"
    for old, new, said in (
        ('person = "id"', 'person = "row"', other),
        ('version = "1"', 'version = "2"', other),
        ('person = "id"', 'person = "id"\nrows_per_person = 2', other),
        ('person = "id"', 'person = "id"\nceiling = 100', other),
        ('name = "wages"', 'name = "pay"', "No dataset is registered as"),
        ("wages.ledger", "other.ledger", "There is no ledger at"),
        ("open = 1", "open = 9", None),
        ('person = "id"', 'person = "id"\nneighbors = "replace"', None),
    ):
        yield Attempt(f"the file says {new!r}", _from_file(old, new), said)


def _link_source(world: World) -> eps.Dataset:
    link = world.home / "link.parquet"
    link.symlink_to(world.source)
    return world.register(str(link))


def _replace_snapshot(other: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        here = world.snapshot()
        origin = world.home / other if other == "snapshot before" else world.snapshot(other)
        kept = world.home / "kept"
        shutil.copytree(origin, kept)
        shutil.rmtree(here)
        kept.rename(here)

    return change


def _terms() -> Iterator[Attempt]:
    terms, accounts = "created under other terms", "There is no other"
    for name, value, said in (
        ("neighbors", "replace", terms),
        ("allow_individual", True, terms),
        ("measure", "zcdp", ""),
        ("accounts", "own", accounts),
        ("renews", "yearly", accounts),
        ("delta", 1e-6, accounts),
        ("rows_per_person", 2, "'wages' was registered with another cap"),
        ("ceiling", 1000.0, None),
    ):
        yield Attempt(f"{name}={value!r}", lambda world, given={name: value}: world.register(**given), said)  # type: ignore[misc]
    yield Attempt("another cap, another name", lambda w: w.register(name="pay", rows_per_person=2))
    not_this = "is not the registered one"
    yield Attempt("an older snapshot in its place", after(_replace_snapshot("snapshot before"), World.open), not_this)
    yield Attempt("another's snapshot in its place", after(_replace_snapshot("health"), World.open), not_this)
    yield Attempt(
        "no snapshot", after(lambda w: shutil.rmtree(w.snapshot()), World.open), "The snapshot of this dataset is gone"
    )


# Consent ------------------------------------------------------------------------------------------------------------


def _say(*words: Any) -> Callable[[World], eps.Dataset]:
    """Everyone says one thing after the other; None is a withdrawal."""

    def attempt(world: World) -> eps.Dataset:
        people = world.open()
        for word in words:
            if word is None:
                people.withdraw(list(world.ids))
            else:
                people.set_level(dict.fromkeys(world.ids, word))
        return people

    return attempt


def _gone_and_back(world: World) -> eps.Dataset:
    world.register(table(world.ids[:-2]), version="2").close()
    return world.register(version="3")


def _consents() -> Iterator[Attempt]:
    yield Attempt("withdrawn and back", _say(None, "strict"))
    yield Attempt("withdrawn, then registered", lambda world: (_say(None)(world).close(), world.register())[1])
    yield Attempt("stricter and back", _say("strict", 0.5))
    yield Attempt("stricter, then registered", lambda world: (_say(0.01)(world).close(), world.register())[1])
    # Half of them had 1 and spent it, half .5.
    yield Attempt("everyone open by their own word", _say("strict", "open"), left=PEOPLE / 2 * 0.5)
    yield Attempt("more by their own word", _say(3.0), left=PEOPLE / 2 * (2 + 2.5))
    yield Attempt("gone and back", _gone_and_back)
    meant = "Levels would mean more than before"
    said = {"levels": {"strict": 0.5, "open": 2.0}}
    yield Attempt("a level means more", lambda w: w.register(**said), "Levels mean something else")
    yield Attempt("a level means more everywhere", lambda w: w.register(**said, redefine=True), meant)
    more = {**said, "redefine": True, "loosen": PEOPLE // 2}
    yield Attempt("a level means more, as it is said", lambda w: w.register(**more), left=PEOPLE / 2 * 1.0)
    yield Attempt("more than is said", lambda w: w.register(**(more | {"loosen": 3})), "would have a larger epsilon")
    every = {"preferences": 5.0}
    yield Attempt("everyone more by the source", lambda world: world.register(**every))
    yield Attempt("everyone more, another name", lambda world: world.register(**every, name="pay"))
    named = table(NAMES).set_column(3, "privacy", pa.array(["free"] * PEOPLE))
    yield Attempt("a level of another name", lambda w: w.register(named, levels={"free": 5.0}))
    yield Attempt("a level of another name, elsewhere", lambda w: w.register(named, name="pay", levels={"free": 5.0}))


ATTEMPTS = [*_spellings(), *_units(), *_ledgers(), *_versions(), *_terms(), *_consents()]
