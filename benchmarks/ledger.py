"""The ledger: charges a second, the cost of a charge with many people, a million people who change their minds.

Times are by the clock on the wall, since a ledger waits for the disk. The head of the chain is kept and synced as
usual. PostgreSQL runs on the same machine, from the wheel that the tests use, with its default settings.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from page import write_between
from report import facts
from rich.console import Console
from rich.table import Table

from epsilons import ledger
from epsilons.ledger import segments
from epsilons.ledger.identity import digests
from epsilons.ledger.ledger import Ledger
from epsilons.storage.sqlite import Sqlite

ROOT = Path(__file__).parents[1]
# The tests know how to start a server.
sys.path.append(str(ROOT / "tests"))
from support.ledger_servers import fresh, running  # noqa: E402

PAGE = ROOT / "docs" / "ledger.md"
START, END = "<!-- results: written by `make bench-ledger ARGS=--write` -->", "<!-- end of results -->"
COHORTS = 20
BACK_ENDS = ("sqlite", "postgresql")
#: Enough for any number of charges of one nano-epsilon.
_GRANT = 10**14


@dataclass(frozen=True)
class Row:
    """One line: a figure for each back end."""

    what: str
    unit: str
    sqlite: float
    postgresql: float


@dataclass(frozen=True)
class Size:
    """How large a run is; the quick one only shows that everything runs."""

    quick: bool
    rows: int

    @property
    def seconds(self) -> float:
        return 0.1 if self.quick else 8.0

    @property
    def processes(self) -> tuple[int, ...]:
        return (2,) if self.quick else (1, 4, 16)

    @property
    def people(self) -> tuple[int, int]:
        return (1_000, 5_000) if self.quick else (1_000, 100_000_000)

    @property
    def changing(self) -> int:
        return 2_000 if self.quick else 1_000_000


# Charges a second ---------------------------------------------------------------------------------------------------


def roster(accounts: Ledger, people: int) -> None:
    """So many people in twenty cohorts, the usual way."""
    accounts.settle_terms("absent", 1)
    grants = _GRANT + np.arange(people, dtype=np.int64) % COHORTS
    accounts.enroll(digests(np.arange(people), accounts.salt), grants)


def charge(accounts: Ledger, name: str, charges: dict[int, int], epoch: int) -> None:
    """One question that charges every cohort."""
    accounts.reserve(name.encode().ljust(32, b"."), charges, epoch=epoch, kind="count")


def client(url: str, name: int, seconds: float, ready: object, counts: object) -> None:
    """One process: charge until the time is over, and say how often."""
    with closing(ledger.open(url)) as accounts:
        charges, epoch = {cohort.id: 1 for cohort in accounts.cohorts()}, accounts.epoch
        charge(accounts, f"{name} first", charges, epoch)
        ready.wait()  # type: ignore[attr-defined]
        end, done = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            charge(accounts, f"{name} {done}", charges, epoch)
            done += 1
        counts.put(done)  # type: ignore[attr-defined]


def charges_a_second(url: str, processes: int, seconds: float) -> float:
    """All processes together, each charging twenty cohorts at a time."""
    with closing(ledger.open(url)) as accounts:
        roster(accounts, 1_000)
    spawn = multiprocessing.get_context("spawn")
    ready, counts = spawn.Barrier(processes), spawn.Queue()
    team = [spawn.Process(target=client, args=(url, n, seconds, ready, counts)) for n in range(processes)]
    for one in team:
        one.start()
    done = sum(counts.get() for _ in team)
    for one in team:
        one.join()
    return done / seconds


# The cost of a charge -----------------------------------------------------------------------------------------------


def fill(accounts: Ledger, people: int, entries: int) -> None:
    """So many more people, with entries up to a number: a hundred million take too long otherwise.

    Nothing that a charge touches is left out: cohorts have the sizes. The journal does not know these people, so this
    ledger would not verify.
    """
    database = accounts._database
    lite = isinstance(database, Sqlite)
    people_like = np.frombuffer(np.random.default_rng(1).bytes(16 * entries), "S16")
    with database.write() as connection:
        numbers = np.arange(entries)
        segments.add(connection, segments.Entries.of(people_like, np.full(entries, 3), 1 + numbers % COHORTS))
        connection.execute("UPDATE cohorts SET people = people + :more", {"more": people // COHORTS})
    # What so many rows leave to be tidied up is no part of a charge.
    with closing(database._connect()) as driver:
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)" if lite else "CHECKPOINT")


def milliseconds_a_charge(ledgers: Sequence[Ledger], times: int) -> list[float]:
    """The median for each ledger; they are charged by turns, so that whatever else the machine does falls on all."""
    charges = [{cohort.id: 1 for cohort in accounts.cohorts()} for accounts in ledgers]
    taken: list[list[float]] = [[] for _ in ledgers]
    for turn in range(times):
        for which, accounts in enumerate(ledgers):
            start = time.perf_counter()
            charge(accounts, str(turn), charges[which], 1)
            taken[which].append(time.perf_counter() - start)
    return [1e3 * statistics.median(times[len(times) // 10 :]) for times in taken]


def cost(places: Callable[[], str], size: Size) -> Iterator[tuple[str, float]]:
    """The same charges with few people and with many."""
    few, many = size.people
    stored = min(many, size.rows)
    with closing(ledger.open(places())) as accounts, closing(ledger.open(places())) as large:
        roster(accounts, few)
        roster(large, few)
        fill(large, many - few, stored)
        assert sum(cohort.people for cohort in large.cohorts()) == many
        taken = milliseconds_a_charge([accounts, large], 10 if size.quick else 200)
        yield f"a charge to {COHORTS} cohorts with {few:,} people", taken[0]
        rows = f", {stored:,} of them with rows" if stored < many else ""
        yield f"a charge to {COHORTS} cohorts with {many:,} people{rows}", taken[1]


# A million people ---------------------------------------------------------------------------------------------------


def minds(url: str, people: int) -> Iterator[tuple[str, float]]:
    """Everyone at once: join, change their minds, say the same again, withdraw."""

    def timed(action: Callable[[], object]) -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    with closing(ledger.open(url)) as accounts:
        accounts.settle_terms("absent", 1)
        ids = np.arange(people)
        known: list[np.ndarray[tuple[int, int], np.dtype[np.uint8]]] = []
        yield f"digests of {people:,} ids", timed(lambda: known.append(digests(ids, accounts.salt)))
        grants = _GRANT + ids % COHORTS
        yield f"{people:,} people join", timed(lambda: accounts.enroll(known[0], grants))
        yield f"{people:,} people change their grants", timed(lambda: accounts.set_grants(known[0], grants + COHORTS))
        yield "the same preferences again", timed(lambda: accounts.enroll(known[0], grants + COHORTS))
        yield "reading who stands where", timed(lambda: accounts.members())
        yield f"{people:,} people withdraw", timed(lambda: accounts.withdraw(known[0]))
        yield "verifying all of it", timed(lambda: accounts.verify())


# The run ------------------------------------------------------------------------------------------------------------


def measure(size: Size, server: str, folder: Path) -> Iterator[tuple[str, str, str, float]]:
    """(back end, what, unit, figure) of everything."""
    numbers = iter(range(10**6))
    places: dict[str, Callable[[], str]] = {
        "sqlite": lambda: f"sqlite:///{folder}/{next(numbers)}.ledger",
        "postgresql": lambda: fresh(server),
    }
    for kind, place in places.items():
        for processes in size.processes:
            name = f"charges, {processes} process{'es' * (processes > 1)}"
            yield kind, name, "a second", charges_a_second(place(), processes, size.seconds)
        for what, taken in minds(place(), size.changing):
            yield kind, what, "s", taken
        for what, taken in cost(place, size):
            yield kind, what, "ms", taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything runs, measures nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    parser.add_argument("--write", action="store_true", help=f"put the results into docs/{PAGE.name}")
    parser.add_argument("--rows", type=int, default=10**8, help="write rows for so many of the hundred million people")
    options = parser.parse_args(arguments)
    if options.write and options.quick:
        parser.error("--write needs a whole run: leave out --quick")
    found: dict[tuple[str, str], dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="epsilons-bench-") as folder, running() as server:
        os.environ["XDG_STATE_HOME"] = folder
        for kind, what, unit, figure in measure(Size(options.quick, options.rows), server, Path(folder)):
            Console(stderr=True, highlight=False).print(f"{kind}: {what}: {figure:.3g} {unit}")
            found.setdefault((what, unit), {})[kind] = figure
    rows = [Row(what, unit, *(figures[kind] for kind in BACK_ENDS)) for (what, unit), figures in found.items()]
    if options.json:
        document = {"quick": options.quick, **facts(), "rows": [asdict(row) for row in rows]}
        print(json.dumps(document, indent=2))
    else:
        print_table(rows)
    if options.write:
        write(rows)
    return 0


def print_table(rows: Sequence[Row]) -> None:
    """The figures for people."""
    table = Table("what", *BACK_ENDS)
    for row in rows:
        table.add_row(row.what, figure(row, row.sqlite), figure(row, row.postgresql))
    Console(highlight=False).print(table)


def write(rows: Sequence[Row]) -> None:
    """Put the results between the page's markers."""
    known = facts()
    lines = [
        f"Of {known['date']}: epsilons {known['epsilons']}, Python {known['python']}, {known['cores']} cores, at a "
        f"load of {os.getloadavg()[2]:.1f} in the last quarter of an hour.",
        "",
        "| what | SQLite | PostgreSQL |",
        "|---|---:|---:|",
        *(f"| {row.what} | {figure(row, row.sqlite)} | {figure(row, row.postgresql)} |" for row in rows),
    ]
    write_between(PAGE, (START, END), lines)


def figure(row: Row, value: float) -> str:
    """A figure with its unit, to three digits."""
    return f"{value:,.0f} {row.unit}" if value >= 100 else f"{value:.3g} {row.unit}"


if __name__ == "__main__":
    sys.exit(main())
