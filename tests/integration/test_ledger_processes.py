"""Many processes on one ledger, and processes that are killed: nothing is overspent, nothing released is missing.

All of it on SQLite and on PostgreSQL, with the head of the chain in its usual place or beside the test; the short form
of a test on one of them, by turns. After every run the books are recounted twice from the journal: by the ledger, and
by a recount that knows nothing of the ledger.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import epsilons.ledger
from epsilons.guarantee import NANO
from epsilons.ledger import Recount, StalePlanError
from epsilons.ledger.ledger import Ledger
from support.ledger_clients import digest, run
from support.ledger_recount import balances
from support.ledger_servers import fresh

Told = list[list[dict[str, Any]]]
Held = Callable[[str, int], None]

# "...ing" is inside the transaction, before it commits; the other form just after it is durable.
PLACES = (
    "enrolling", "enrolled", "reserving", "reserved", "touching", "touched", "refunding", "refunded", "storing",
    "stored", "anchoring",
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    """Where a ledger is, and its head."""

    url: str
    head: Path

    def open(self) -> Ledger:
        return epsilons.ledger.open(self.url, witness=self.head)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    if request.param == "postgresql":
        return Site(fresh(request.getfixturevalue("postgres_server")), tmp_path / "head")
    return Site(f"sqlite:///{tmp_path}/people.ledger", tmp_path / "head")


def on(*short: str) -> pytest.MarkDecorator:
    """The back ends of a short test; on the others it is for the long run (soak)."""
    marks = {"sqlite": (), "postgresql": (pytest.mark.integration,)}
    kinds = [
        pytest.param(kind, marks=[*known, *([] if kind in short else [pytest.mark.soak])])
        for kind, known in marks.items()
    ]
    return pytest.mark.parametrize("site", kinds, indirect=True)


def adds_up(book: Ledger) -> Recount:
    """The ledger's own recount, and one from the exported journal that shares no code with it."""
    recount = book.verify()
    assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in book.cohorts()}
    return recount


def people(count: int) -> list[bytes]:
    return [digest(f"person {n}")[:16] for n in range(count)]


# Nothing is overspent -----------------------------------------------------------------------------------------------


def single_people(book: Ledger, cohorts: int, room: int) -> list[tuple[int, int]]:
    """Cohorts of one person each, with room for exactly so many charges: [(cohort, charge)]."""
    charges = [1000 + n for n in range(cohorts)]
    book.enroll(people(cohorts), [charge * room for charge in charges])
    by_grant = {cohort.granted: cohort.id for cohort in book.cohorts()}
    return [(by_grant[charge * room], charge) for charge in charges]


def crowd(book: Ledger, size: int, room: int) -> list[tuple[int, int]]:
    """One cohort of many people."""
    book.enroll(people(size), [NANO] * size)
    return [(1, NANO // room)]


def compete(site: Site, processes: int, charges: list[tuple[int, int]], attempts: int) -> Counter[int]:
    """So many attempts at each cohort, shared out among the processes."""
    job = {"work": "spend", "url": site.url, "anchor": str(site.head), "charges": charges, "epoch": 1}
    shares = [attempts // processes + (n < attempts % processes) for n in range(processes)]
    (told,) = run([[{**job, "name": str(n), "attempts": share} for n, share in enumerate(shares)]])
    assert [one["end"] for one in told] == ["ended"] * processes
    notes = [note for one in told for note in one["notes"]]
    assert sum(note[0] in ("accepted", "refused") for note in notes) == attempts * len(charges)
    return Counter(note[1] for note in notes if note[0] == "accepted")


def overspend(site: Site, make: Any, size: int, room: int, processes: int, attempts: int) -> None:
    book = site.open()
    book.settle_terms("absent", 1)
    charges = make(book, size, room)
    accepted = compete(site, processes, charges, attempts)
    assert accepted == {cohort: room for cohort, _ in charges}
    recount = adds_up(book)
    assert recount.releases == room * len(charges)
    assert all(cohort.reserved == cohort.granted for cohort in recount.cohorts)
    book.close()


@on("sqlite")
def test_single_people_are_charged_exactly_as_often_as_there_is_room(site: Site) -> None:
    overspend(site, single_people, size=12, room=5, processes=4, attempts=12)


@on("postgresql")
def test_a_crowd_is_charged_exactly_as_often_as_there_is_room(site: Site) -> None:
    overspend(site, crowd, size=1000, room=25, processes=8, attempts=80)


@pytest.mark.soak
def test_a_crowd_of_processes(site: Site) -> None:
    overspend(site, crowd, size=1000, room=50, processes=16, attempts=160)


@pytest.mark.soak
@pytest.mark.figure("figure_1_overspending")
def test_a_thousand_single_people(site: Site, record_property: Held) -> None:
    overspend(site, single_people, size=1000, room=100, processes=16, attempts=200)
    record_property("size", 200_000)


@pytest.mark.soak
@pytest.mark.figure("figure_1_overspending")
def test_a_crowd_and_a_hundred_thousand_attempts(site: Site, record_property: Held) -> None:
    overspend(site, crowd, size=1000, room=100, processes=16, attempts=100_000)
    record_property("size", 100_000)


def test_threads_share_a_ledger_in_memory() -> None:
    book = epsilons.ledger.open()
    book.settle_terms("absent", 1)
    ((cohort, charge),) = crowd(book, 100, 40)

    def attempt(n: int) -> bool:
        try:
            book.reserve(digest(str(n)), {cohort: charge}, epoch=1, kind="count")
        except StalePlanError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        accepted = sum(threads.map(attempt, range(120)))
    assert accepted == book.verify().releases == 40


FORKING = """
import os, sys
import epsilons.ledger
book = epsilons.ledger.open(sys.argv[1])
book.settle_terms("absent", 1)
book.enroll([b"sixteen bytes ..", b"another sixteen."], [1000, 1000])
children = []
for n in range(4):
    child = os.fork()
    if child == 0:
        for turn in range(5):
            book.reserve(bytes([n, turn]) * 16, {1: 1}, epoch=1, kind="count")
        sys.exit(0)
    children.append(child)
for turn in range(5):
    book.reserve(bytes([99, turn]) * 16, {1: 1}, epoch=1, kind="count")
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
assert book.verify().releases == 25
book.close()
"""


@on("postgresql")
def test_a_ledger_goes_on_in_parent_and_children_after_a_fork(site: Site) -> None:
    # A child cannot close the connections it inherited, which are its parent's: the driver's remark is no news.
    command = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", FORKING, site.url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


# Nothing released is missing ----------------------------------------------------------------------------------------


def killed_once(site: Site, place: str, name: str) -> list[list[dict[str, Any]]]:
    """A client that is killed at the place, and one that asks all of it again."""
    job = {
        "work": "ask", "url": site.url, "anchor": str(site.head), "joining": True,
        "giving_back": place.startswith("refund"),
        "questions": [f"{name} first", f"{name} second"], "fault": place, "armed": f"{name} second",
    }  # fmt: skip
    return [[job], [{**job, "armed": None, "giving_back": False}]]


def nothing_is_missing(site: Site, told: Told, places: list[str]) -> None:
    """The transcript of the clients against the ledger."""
    book = site.open()
    adds_up(book)
    history = {past.number: past for past in book.history()}
    released: dict[str, str] = {}
    for place, (killed,), (again,) in zip(places, told[::2], told[1::2], strict=True):
        assert (killed["end"], again["end"]) == ("killed", "ended"), place
        for what, *rest in (*killed["notes"], *again["notes"]):
            if what == "reserved":
                assert rest[1] in history
            if what == "refunded":
                assert history[rest[1]].state == "refunded"
            if what == "read":
                assert history[rest[1]].state in ("touched", "stored")
            if what == "released":
                name, answer = rest
                held = book.find(digest(name))
                assert held is not None
                assert held.answer is not None
                assert held.answer.hex() == answer == released.setdefault(name, answer)
    live = [past for past in history.values() if past.state != "refunded"]
    assert len(live) == len(released) == 2 * len(places)
    assert {past.state for past in live} == {"stored"}
    for number, cohort in enumerate(book.cohorts(), 1):
        paid = sum(past.cohorts.get(cohort.id, 0) for past in live)
        assert cohort.id == number
        assert paid <= cohort.spent + cohort.reserved
    book.close()


def begin(site: Site) -> None:
    book = site.open()
    book.settle_terms("absent", 1)
    book.enroll(people(5), [NANO] * 5)
    book.close()


def kill_at(site: Site, places: list[str]) -> None:
    begin(site)
    rounds = [one for n, place in enumerate(places) for one in killed_once(site, place, f"{place} {n}")]
    nothing_is_missing(site, run(rounds), places)


def test_a_kill_loses_nothing(site: Site) -> None:
    """At every place, half of them on either back end."""
    kill_at(site, list(PLACES[site.url.startswith("sqlite") :: 2]))


@pytest.mark.soak
def test_a_kill_at_any_place_loses_nothing(site: Site) -> None:
    kill_at(site, list(PLACES))


@pytest.mark.soak
@pytest.mark.figure("figure_2_kills")
@pytest.mark.parametrize("seed", range(20))
def test_five_hundred_kills(site: Site, seed: int, record_property: Held) -> None:
    kill_at(site, random.Random(seed).choices(PLACES, k=25))
    record_property("size", 25)


# The same question --------------------------------------------------------------------------------------------------


def repeat(site: Site, processes: int, times: int) -> None:
    begin(site)
    job = {"work": "ask", "url": site.url, "anchor": str(site.head), "questions": ["the same"]}
    kills = [
        [{**job, "fault": place, "armed": "the same"}] for place in ("reserving", "reserved", "touched", "storing")
    ]
    crowd = [{**job, "questions": ["the same"] * times} for _ in range(processes)]
    told = run([*kills, crowd])
    assert [one["end"] for (one,) in told[:-1]] == ["killed"] * len(kills)
    answers = Counter(note[2] for one in told[-1] for note in one["notes"] if note[0] == "released")
    assert list(answers.values()) == [processes * times]
    book = site.open()
    (past,) = book.history()
    assert past.state == "stored"
    assert book.remaining().epsilons == {1.0: 0.99}
    adds_up(book)
    book.close()


@on("sqlite")
def test_hundreds_of_repeats_cost_one_charge(site: Site) -> None:
    repeat(site, processes=4, times=75)


@pytest.mark.soak
def test_ten_thousand_repeats_cost_one_charge(site: Site) -> None:
    repeat(site, processes=16, times=625)
