"""Functions and mechanisms that give somebody away by other ways than their numbers: each is refuted, none honest."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.auditing.by_draws import spread_over
from epsilons.auditing.made_up import list_pairs
from epsilons.auditing.plugins import approve
from epsilons.auditing.views import Several, comparable, form_of, list_views, observe
from epsilons.mechanisms.base import Weighing
from epsilons.mechanisms.minimum import Minimum
from epsilons.noise import discrete_laplace, system
from epsilons.statistics.base import Answer, Weighting

ROSTER, DOMAIN, DRAWS = [1.0] * 3, [0, 1], 1000


def noise(rate: Any = 1) -> int:
    return discrete_laplace(system(), Fraction(rate))


def raise_about(values: Any) -> int:
    raise ValueError(f"the sum is {sum(values)}")


def leave(values: Any) -> int:
    if sum(values) > 2:
        raise SystemExit
    return noise()


def shared(values: Any) -> list[float]:
    """A sum and a number of people, each with noise enough, and both with the same."""
    one = np.random.default_rng().laplace(scale=30)
    return [sum(values) + one, 5 + one]


class Remembering:
    """Noise enough for the values at hand, and in its last bit what was asked before."""

    def __init__(self) -> None:
        self.before = 0

    def __call__(self, values: Any) -> int:
        told, self.before = self.before, sum(values) % 2
        return 2 * noise("1/500") + told


def warn(values: Any, always: bool = False) -> int:
    if always or sum(values) > 2:
        warnings.warn("the sum is large", stacklevel=1)
    return noise()


LIES: dict[str, Callable[[Any], Any]] = {
    "of what type": lambda values: (float if sum(values) > 2 else int)(noise()),
    "a truth or a number": lambda values: bool(noise() > 0) if sum(values) > 2 else int(noise() > 0),
    "how long a float": lambda values: (np.float32 if sum(values) > 2 else np.float64)(noise()),
    "the sign of nothing": lambda values: -0.0 if sum(values) > 2 else 0.0,
    "how many numbers": lambda values: [np.random.default_rng().laplace() for _ in values],
    "the names of numbers": lambda values: {("a" if 1 in values else "b"): float(noise())},
    "the order of names": lambda values: dict.fromkeys(("a", "b") if 1 in values else ("b", "a"), 0.5 * noise()),
    "the shape of an array": lambda values: np.zeros((2, 3) if 1 in values else (3, 2)) + noise(),
    "the type of an array": lambda values: np.full(2, noise(), np.int32 if 1 in values else np.int64),
    "the text of an error": raise_about,
    "leaving for good": leave,
    "odd or even": lambda values: 2 * noise("1/500") + sum(values) % 2,
    "odd or even, huge": lambda values: (2 * noise("1/500") << 70) + sum(values) % 2,
    "beyond all floats": lambda values: 10**400 + 2 * noise("1/500") + sum(values) % 2,
    "one noise for two numbers": shared,
    "a warning": warn,
    "what was asked before": Remembering(),
    "the spread of one of ten": lambda values: [
        float(noise("1/9")) * (100 if place == 9 and sum(values) > 2 else 1) for place in range(10)
    ],
}


@pytest.mark.parametrize("lie", LIES)
def test_a_function_that_gives_people_away_is_refuted(lie: str) -> None:
    assert not eps.audit(LIES[lie], ROSTER, domain=DOMAIN, draws=DRAWS).holds


@pytest.mark.parametrize("person", [0, 1, 2])
def test_everyone_of_a_level_is_tried(person: int) -> None:
    assert not eps.audit(lambda v: v[person], ROSTER, domain=DOMAIN, neighbors="replace", draws=DRAWS).holds
    pairs = list(list_pairs((0, 5, 9), [0, 1, 2], 3, (0, 5, 9), 24))
    assert {(pair.person, pair.neighbour[pair.person]) for pair in spread_over(pairs, 24)} >= {(person, 0), (person, 9)}


calls = itertools.count()
HONEST: dict[str, Callable[[Any], Any]] = {
    "how often it was called": lambda values: next(calls),
    "a warning to everyone": lambda values: len(values) + warn(values, always=True),
    "names": lambda values: {"people": len(values) + noise("1/2"), "ones": sum(values) + noise("1/2")},
    "a type that follows from the noise": lambda values: (lambda n: float(n) if n % 2 else n)(len(values) + noise()),
    "an array": lambda values: np.array([[len(values) + noise("1/2")], [sum(values) + noise("1/2")]]),
    "huge numbers": lambda values: 10**400 + len(values) + noise(),
    "one noise for what nobody moves": lambda values: (lambda n: [n, 7 + n])(len(values) + noise()),
}


@pytest.mark.parametrize("name", HONEST)
def test_a_function_that_gives_nobody_away_is_not_refuted(name: str) -> None:
    assert eps.audit(HONEST[name], ROSTER, domain=DOMAIN, draws=DRAWS).holds


def test_what_is_seen_beside_a_number_is_told() -> None:
    assert "X = its warnings" in str(eps.audit(warn, ROSTER, domain=DOMAIN, draws=DRAWS).worst)
    found = eps.audit(Remembering(), ROSTER, domain=DOMAIN, draws=DRAWS)
    assert "in the answer to other data that comes next" in str(found.worst)
    assert any("not how long they take" in note for note in found.notes)


def test_outcomes_are_compared_by_what_is_seen_of_them() -> None:
    assert comparable({"a": 1, "b": [2.5, np.array([1])]}) == (1, (2.5, (1,)))
    assert form_of(comparable({"a": 1, "b": [2.5]})) == "dict of 'a', 'b': 1 int, 1 list: 1 float"
    assert form_of(Several([1, 2, 0.5], "list")) != form_of(Several([1, 2, 5], "list"))
    assert {form_of(float("nan")), form_of(-0.0), form_of(0.0)} == {"float nan", "float -0", "float"}
    assert observe(lambda: 1 / 0) == "raised ZeroDivisionError: division by zero"
    assert "its form" in [view.name for view in list_views([1, 2.0], [1, 2.0])]


# Mechanisms that say one thing and do another ------------------------------------------------------------------------


def mechanism(**members: Any) -> Any:
    told = {"name": "told", "gist": "as it says", "__module__": "another.package", **members}
    return dataclass(frozen=True)(type("Told", (Minimum,), told))


def tell_all(_: Any, question: Any, people: Any, entropy: Any) -> Answer:
    return Answer(float(np.nansum(people.values)))


@pytest.mark.parametrize(
    ("statistic", "given"),
    [("count", {}), ("mean", {"bounds": (0, 1)}), ("median", {"bounds": (0, 1), "step": 0.5, "missing": "center"})],
)
def test_a_mechanism_is_held_to_what_it_draws_and_not_to_the_law_that_it_tells(statistic: str, given: Any) -> None:
    broken = mechanism(draw=tell_all)
    found = eps.audit(broken, [0.5, 1.0], statistic=statistic, draws=400, **given)
    assert found.refuted == (f"{statistic} by told, absent",)
    assert not approve(broken, statistic, "absent")


def test_bulk_draws_that_are_in_order_do_not_help_and_honest_draws_of_its_own_do_not_hurt() -> None:
    in_order = mechanism(draw=tell_all, simulate=lambda *_: Minimum.simulate(*_))
    assert not eps.audit(in_order, [1.0], draws=400).holds
    honest = mechanism(draw=lambda *_: Minimum.draw(*_))
    assert eps.audit(honest, [1.0], draws=400).holds
    assert approve(honest, "count", "absent")


def test_sums_that_a_mechanism_only_tells_of_are_not_believed() -> None:
    def weigh(_: Any, question: Any, levels: Any) -> Weighting:
        return Weighting((1,) * len(levels.grants), 1, Fraction(levels.smallest))

    def told(self: Any, question: Any, people: Any) -> Any:
        return Minimum().noisy_sums(question, type(people)(np.zeros_like(people.values), people.roster))

    kind = type("Sums", (Weighing,), {"name": "sums", "gist": "", "weigh": weigh, "noisy_sums": told})
    half = type("Half", (kind,), {"charge": lambda _, question, levels: (levels.smallest // 2,) * len(levels.grants)})
    assert eps.audit(dataclass(frozen=True)(kind), [0.5, 1.0]).holds
    assert not eps.audit(dataclass(frozen=True)(half), [0.5, 1.0]).holds
