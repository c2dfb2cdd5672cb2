"""Complete counts are centred: everyone moves them by a half; what that costs, what it gains, and where it ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import epsilons as eps
from epsilons.auditing import ABSENT
from epsilons.mechanisms.base import create, find_error, list_mechanisms
from epsilons.preferences import roster_of
from epsilons.statistics.additive import Part
from epsilons.statistics.base import Question, RowScope
from epsilons.statistics.count import ENTRY, Count
from epsilons.summaries.arrays import ArrayPeople
from epsilons.summaries.cells import Integers
from epsilons.testing import seeded
from support.small_worlds import NEIGHBORS, audit_exactly, variants

DOMAIN = (0.0, 1.0, 7.0, ABSENT)
CENTRED, PLAIN = Count(centred=True), Count()
SERVING = ["exponential", "minimum", "mixed", "robust", "sample", "stretching", "threshold", "weighted"]


def test_who_serves() -> None:
    levels = roster_of([0.5, 1.0]).levels
    made = {name: create(name, CENTRED) for name in sorted(list_mechanisms())}
    assert [name for name, one in made.items() if one.refuses(Question(CENTRED), levels) is None] == SERVING


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("name", SERVING)
def test_nobody_loses_more_than_they_are_charged(name: str, neighbors: str) -> None:
    for epsilons in ((0.2, 0.5, 1.0), (0.3, math.inf, 1.0)):
        for mechanism in variants(name, CENTRED, epsilons):
            verdict = audit_exactly(mechanism, Question(CENTRED, neighbors), epsilons, DOMAIN)
            assert verdict.worst is not None
            assert verdict.holds, f"{mechanism} {epsilons}: {verdict}"
            if name in ("minimum", "weighted", "robust"):
                assert verdict.worst.ratio == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", ["minimum", "stretching", "exponential", "mixed"])
def test_people_are_charged_the_same(name: str) -> None:
    """By mechanisms whose charges do not follow from where the error is least."""
    levels = roster_of([0.2, 0.5, 1.0, 1.0]).levels
    for neighbors in NEIGHBORS:
        charges = {create(name, one).charge(Question(one, neighbors), levels) for one in (CENTRED, PLAIN)}
        assert len(charges) == 1


@dataclass(frozen=True)
class MissingIsZero(Count):
    """The planted bug: whoever is missing counts as a zero, while the noise hides a half."""

    def make_parts(self, summed: list[Integers]) -> list[Integers]:
        everyone = np.array([[2], [1]])  # of the roster below
        return [2 * summed[0] - everyone]


@dataclass(frozen=True)
class HalfMoves(Count):
    """The planted bug: one who is replaced is taken to move a half, too."""

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("centred count", 1, {"absent": 1, "replace": 1}),)


def test_what_breaks_it_is_caught() -> None:
    for wrong, neighbors in ((MissingIsZero(centred=True), "absent"), (HalfMoves(centred=True), "replace")):
        verdict = audit_exactly(create("minimum", wrong), Question(wrong, neighbors), (0.5, 0.5, 1.0), DOMAIN)
        assert verdict.worst is not None
        assert verdict.worst.ratio == pytest.approx(2, abs=1e-6)


@pytest.mark.parametrize("name", ["minimum", "sample", "robust", "mixed", "exponential"])
def test_it_is_the_count(name: str) -> None:
    """On average, for thousands of draws; and exactly, but for halves of whoever is missing."""
    values, roster = [1, 1, 1, 0, 0, 0, 0, 0] * 10, roster_of([2.0] * 40 + [3.0] * 40)
    question = Question(CENTRED, assume=0.0)
    options = {"threshold": "max", "rescale": True} if name == "sample" else {}
    drawn = create(name, CENTRED, **options).simulate(question, ArrayPeople.of(values, roster), seeded(5), 600)
    assert abs(float(np.mean(drawn)) - 30) < 5 * float(np.std(drawn)) / 600**0.5 + 0.01
    assert CENTRED.exact(ArrayPeople.of(values, roster))[0] == 30
    gone = ArrayPeople.of([math.nan, math.nan, *values[2:]], roster)
    assert CENTRED.exact(gone)[0] == 29
    assert PLAIN.exact(gone)[0] == 28


def test_the_errors_are_smaller_and_are_as_predicted() -> None:
    """Paper 1's people: RMSE of many draws within a tenth of what is predicted, and a quarter less at least."""
    random = np.random.default_rng(4)
    epsilons = random.choice([0.1, 0.5, 1.0], 1000, p=[0.54, 0.37, 0.09])
    people = ArrayPeople.of((random.random(1000) < 0.5).astype(int), roster_of(epsilons))
    truth = people.values.sum()
    for name in ("weighted", "robust", "minimum", "sample"):
        errors = []
        for statistic in (PLAIN, CENTRED):
            question = Question(statistic, assume=0.0)
            mechanism = create(name, statistic)
            errors.append(find_error(mechanism, question, people.levels))
        drawn = mechanism.simulate(question, people, seeded(1), 300)
        assert np.sqrt(np.mean((drawn - truth) ** 2)) < 1.15 * errors[1]
        assert errors[1] < 0.76 * errors[0]


def test_only_a_complete_column_of_everyone_is_centred() -> None:
    whole = {"scope": RowScope().scope, "fixed": True, "complete": True, "column": True}
    assert ENTRY.build({}, RowScope(**whole)).identity() == "Count(centred=True)"
    for name in ("fixed", "complete", "column"):
        assert not ENTRY.build({}, RowScope(**{**whole, name: False})).centred  # type: ignore[attr-defined]
    assert not ENTRY.build({}, RowScope(**whole, neighbors="replace")).centred  # type: ignore[attr-defined]
    assert not ENTRY.build({}, RowScope(**whole, unbounded=True)).centred  # type: ignore[attr-defined]
    assert PLAIN.identity() == "Count()"


def test_arrays_of_whole_numbers_are_and_lists_are_not() -> None:
    epsilons, bits = [0.5] * 400, [1, 0, 1, 1] * 100  # so many that no answer is cut to what is possible
    centred, plain = (eps.count(v, epsilons, mechanism="minimum") for v in (np.array(bits), bits))
    assert centred.error == pytest.approx(plain.error / 2, rel=0.05)
    told = eps.count(bits, epsilons, mechanism="minimum", complete=True)
    assert told.error == pytest.approx(centred.error)
    assert any("stands at the centre" in caveat for caveat in told.guarantee.caveats)
