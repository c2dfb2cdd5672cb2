"""Draws from tables: the law of the arrays, whether people are kept by coins or counts are thinned.

A test accepts at p > ACCEPT and rejects a planted bug at p < REJECT; seeds make them repeatable.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from epsilons.dataset import people as table_people
from epsilons.dataset.people import TablePeople
from epsilons.dataset.question import TableQuestion
from epsilons.noise.coins import keep_digests
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import roster_of
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question
from epsilons.statistics.counting import Counting
from epsilons.statistics.order import Order
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.rows import RowPeople, samples
from support.small_worlds import at_max
from support.tables import Bench, question_of

pytestmark = pytest.mark.statistical

ACCEPT, REJECT = 1e-3, 1e-5
DRAWS = 200


def p_value(seen: Counter[Any], law: dict[Any, float]) -> float:
    """Pearson's test; outcomes are merged until each expects five draws. What is impossible must not occur."""
    assert set(seen) <= set(law)
    total = seen.total()
    merged: list[list[float]] = [[0.0, 0.0]]
    for outcome in sorted(law, key=repr):
        if merged[-1][1] >= 5:
            merged.append([0.0, 0.0])
        merged[-1][0] += seen[outcome]
        merged[-1][1] += law[outcome] * total
    if merged[-1][1] < 5 and len(merged) > 1:
        last = merged.pop()
        merged[-1] = [merged[-1][0] + last[0], merged[-1][1] + last[1]]
    observed, expected = np.array(merged).T
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


# --- coins and thinning -----------------------------------------------------------------------------------------------

#: (id, group, value): ann has two rows in two groups, dee does not count.
ROWS = [("ann", "a", 1.0), ("ann", "b", 1.0), ("bob", "a", 1.0), ("cy", "b", 1.0), ("dee", "c", 1.0), ("eve", "a", 1.0)]
GRANTS = {"ann": 0.5, "bob": 0.5, "cy": 1.0, "dee": 1.0, "eve": math.inf}
CHANCES = [3 * 2**62, 2**62, ALWAYS]


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def asked(bench: Bench, rows: int, **wording: Any) -> TableQuestion:
    return question_of(bench.terms("absent", rows), **wording)


def opened(bench: Bench, rows: int, meaning: TableQuestion) -> tuple[TablePeople, RowPeople]:
    """The same people as a table and by their definition; with one row each only the first of ann's."""
    listed = ROWS if rows > 1 else [row for place, row in enumerate(ROWS) if place != 1]
    records = [{"id": name, "x": x, "k": 1, "g": group, "b": None, "f": None} for name, group, x in listed]
    groups = {"a": 0, "b": 1}
    slow = RowPeople(
        tuple(tuple((groups.get(g), x) for name, g, x in listed if name == person) for person in GRANTS),
        roster_of(list(GRANTS.values())),
    )
    return bench.people(records, GRANTS, rows, meaning), slow


def sampled_law(people: RowPeople, statistic: Additive) -> dict[Any, float]:
    """Over all samples of people there are."""
    law: dict[Any, float] = {}
    chances = [CHANCES[code] / ALWAYS for code in people.roster.codes]
    for kept in samples(len(people.rows)):
        chance = math.prod(c if keep else 1 - c for c, keep in zip(chances, kept, strict=True))
        if chance > 0:
            outcome = tuple(map(int, np.concatenate(people.only(kept).tally(statistic), axis=None)))
            law[outcome] = law.get(outcome, 0.0) + chance
    return law


class SeenBeforeError(Exception):
    """These people were kept before, and the table has already been asked about them."""


def sampled(people: TablePeople, statistic: Additive, entropies: Iterator[Entropy], draws: int) -> Counter[Any]:
    """What so many samples add up to. Coins fall in every one of them; of those who keep the same people the table,
    whose answer has nothing random, is asked about the first."""
    tallies: dict[bytes, Any] = {}
    seen: Counter[Any] = Counter()
    kept, toss = b"", table_people.keep_digests

    def keep(*coins: Any) -> NDArray[np.bool_]:
        nonlocal kept
        fallen = toss(*coins)
        kept = fallen.tobytes()
        if kept in tallies:
            raise SeenBeforeError
        return fallen

    with patch.object(table_people, "keep_digests", keep):
        for _ in range(draws):
            kept = b""
            try:
                tally = statistic.sampled_tally(people, CHANCES, next(entropies))
                outcome = tuple(map(int, np.concatenate(tally, axis=None)))
            except SeenBeforeError:
                outcome = tallies[kept]
            if kept:  # where counts are thinned no coins are anybody's
                tallies[kept] = outcome
            seen[outcome] += 1
    return seen


QUESTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "thinned": (1, {"statistic": "count", "of": "rows", "by": {"g": ["a", "b"]}}),
    "coins": (2, {"statistic": "count", "of": "rows", "by": {"g": ["a", "b"]}}),
    "coins of people": (2, {"statistic": "count", "of": "people", "by": {"g": ["a", "b"]}}),
    "coins of a sum": (1, {"statistic": "sum", "column": "x", "bounds": (0.0, 1.0), "by": {"g": ["a", "b"]}}),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_samples_have_the_law_of_their_definition(bench: Bench, name: str) -> None:
    rows, wording = QUESTIONS[name]
    meaning = asked(bench, rows, **wording)
    statistic = meaning.question.statistic
    assert isinstance(statistic, Additive)
    assert (isinstance(statistic, Counting) and statistic.one_each) is (name == "thinned")
    people, slow = opened(bench, rows, meaning)
    fresh = itertools.repeat(seeded(31))
    assert p_value(sampled(people, statistic, fresh, DRAWS), sampled_law(slow, statistic)) > ACCEPT
    bench.close(people)


def planted(bug: str) -> Callable[..., NDArray[np.bool_]]:
    """Coins that are wrong in one way."""

    def keep(entropy: Entropy, digests: NDArray[np.uint8], codes: NDArray[Any], chances: Any) -> NDArray[np.bool_]:
        if bug == "a third of the chances missing":
            chances = [chance if chance >= ALWAYS else chance * 2 // 3 for chance in chances]
        if bug == "one coin for all":
            digests = np.zeros_like(digests)
        if bug == "the same key every time":
            entropy = seeded(1)
        return keep_digests(entropy, digests, codes, chances)

    return keep


@pytest.mark.parametrize("bug", ["a third of the chances missing", "one coin for all", "the same key every time"])
def test_a_wrong_sample_is_rejected(bench: Bench, bug: str) -> None:
    meaning = asked(bench, 2, **QUESTIONS["coins"][1])
    statistic = meaning.question.statistic
    assert isinstance(statistic, Additive)
    people, slow = opened(bench, 2, meaning)
    with patch.object(table_people, "keep_digests", planted(bug)):
        seen = sampled(people, statistic, itertools.repeat(seeded(31)), DRAWS)
    assert p_value(seen, sampled_law(slow, statistic)) < REJECT
    bench.close(people)


# --- whole draws ------------------------------------------------------------------------------------------------------

VALUES = [0.0, 1.0, math.nan, 3.0, 3.0]
EPSILONS = [0.7, 1.5, 1.5, 3.0, math.inf]
#: Whatever a listed law has no place of its own for.
ELSEWHERE = -1e9
DRAWN: dict[str, tuple[str, dict[str, Any]]] = {
    "count by minimum": ("minimum", {"statistic": "count", "where": "x >= 1"}),
    "count by sample": ("sample", {"statistic": "count", "where": "x >= 1"}),
    "median by sample": (
        "sample",
        {"statistic": "median", "column": "x", "bounds": (0, 3), "step": 1, "for_interval": 0},
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_from_a_table_have_the_exact_law_of_the_array(bench: Bench, name: str) -> None:
    """Through `draw`, as a release does it. A count's law is listed out to where nothing is expected."""
    chosen, wording = DRAWN[name]
    meaning = asked(bench, 1, **wording)
    mechanism = at_max(chosen, meaning.question.statistic)
    grants = {f"p{place}": epsilon for place, epsilon in enumerate(EPSILONS)}
    nothing = {"k": 1, "g": None, "b": None, "f": None}
    records = [{"id": f"p{place}", "x": x, **nothing} for place, x in enumerate(VALUES) if not math.isnan(x)]
    people = bench.people(records, grants, 1, meaning)
    question, entropy = Question(meaning.question.statistic), seeded(17)
    values = np.array(VALUES)
    if not isinstance(meaning.question.statistic, Order):
        values = np.where(values >= 1, 1.0, np.nan)
    array = ArrayPeople.of(values, roster_of(EPSILONS))
    outcomes, logs = mechanism.distribution(question, array)
    law = {_plain(outcome): math.exp(log) for outcome, log in zip(outcomes, logs, strict=True) if log > -math.inf}
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    drawn = [mechanism.draw(question, people, entropy) for _ in range(DRAWS)]
    results = [answer.value if answer.sums is None else answer.sums[0] for answer in drawn]
    seen = Counter(outcome if (outcome := _plain(result)) in law else ELSEWHERE for result in results)
    assert p_value(seen, law) > ACCEPT
    shifted = {outcome if outcome == ELSEWHERE else outcome + 1: chance for outcome, chance in law.items()}
    moved = Counter({outcome: n for outcome, n in seen.items() if outcome in shifted})
    assert p_value(moved, shifted) < REJECT
    bench.close(people)


def _plain(outcome: Any) -> float:
    """A number, whatever it is wrapped in."""
    while isinstance(outcome, (list, tuple, np.ndarray)):
        (outcome,) = outcome
    return ELSEWHERE if isinstance(outcome, str) else float(outcome)
