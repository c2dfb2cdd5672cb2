"""Functions and mechanisms that give somebody away by other ways than their numbers: each is refuted, none honest."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.auditing.built_in import DRAWING
from epsilons.auditing.by_draws import spread_over
from epsilons.auditing.made_up import list_pairs
from epsilons.auditing.plugins import approve
from epsilons.auditing.views import Several, comparable, form_of, list_views, observe
from epsilons.mechanisms.base import OWN, Weighing
from epsilons.mechanisms.minimum import Minimum
from epsilons.mechanisms.mixed import MixedMean
from epsilons.noise import discrete_laplace, system
from epsilons.statistics.base import Answer, Question, Statistic, Weighting

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


@dataclass(frozen=True)
class Told:
    """An answer of one's own making, which shows nothing of itself."""

    number: float

    def __repr__(self) -> str:
        return "Told()"


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
    "a number that lies deep": lambda values: {"told": [[sum(values) + 1e-3 * np.random.default_rng().random()]]},
    "a number beside a word": lambda values: ["so many", sum(values) + 1e-3 * np.random.default_rng().random()],
    "a word beside a number": lambda values: [np.random.default_rng().laplace(), "many" if sum(values) > 2 else "few"],
    "a decimal": lambda values: sum(values) + Decimal(np.random.default_rng().random()) / 1000,
    "a date": lambda values: date(2024, 1, 1 + sum(values)),
    "a table": lambda values: pa.table({"x": [sum(values) + 1e-3 * np.random.default_rng().random()] * 2}),
    "an object of one's own": lambda values: Told(sum(values) + 1e-3 * np.random.default_rng().random()),
    "a function of other names": lambda x, epsilons: sum(one or 0 for one in x),
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
    "numbers that lie deep": lambda values: {
        "all": [[len(values) + noise("1/2")], {"ones": sum(values) + noise("1/2")}]
    },
    "a number beside a word": lambda values: ["people", len(values) + noise()],
    "an object of one's own": lambda values: Told(float(len(values) + noise())),
    "huge numbers": lambda values: 10**400 + len(values) + noise(),
    "one noise for what nobody moves": lambda values: (lambda n: [n, 7 + n])(len(values) + noise()),
}


@pytest.mark.parametrize("name", HONEST)
def test_a_function_that_gives_nobody_away_is_not_refuted(name: str) -> None:
    assert eps.audit(HONEST[name], ROSTER, domain=DOMAIN, draws=DRAWS).holds


def test_what_shows_nothing_of_itself_is_refused_and_so_is_what_always_fails() -> None:
    """Of a model whose text holds no numbers, or a function that never ran, an audit would find nothing."""
    for silent in (object, lambda: (word for word in "abc"), lambda: [{"model": object()}]):
        with pytest.raises(eps.PlanError, match="cannot be compared"):
            eps.audit(lambda values, silent=silent: silent(), ROSTER, domain=DOMAIN, draws=DRAWS)
    with pytest.raises(eps.PlanError, match=r"raised TypeError: .* missing 1 required positional argument: 'other'"):
        eps.audit(lambda values, other: noise(), ROSTER, domain=DOMAIN, draws=DRAWS)


def test_what_is_seen_beside_a_number_is_told() -> None:
    assert "X = its warnings" in str(eps.audit(warn, ROSTER, domain=DOMAIN, draws=DRAWS).worst)
    found = eps.audit(Remembering(), ROSTER, domain=DOMAIN, draws=DRAWS)
    assert "in the answer to other data that comes next" in str(found.worst)
    assert any("not how long they take" in note for note in found.notes)


def test_functions_take_values_by_whatever_name() -> None:
    by_name: list[Callable[..., Any]] = [
        lambda epsilons, x: (len(epsilons), len(x)),
        lambda x, /, epsilons: (len(epsilons), len(x)),
        lambda scale, *, epsilons, values: (len(epsilons), len(values)),
        lambda scale, x, epsilons: (len(epsilons), len(x)),
    ]
    for function in by_name:
        given = {"scale": 1} if "scale" in signature(function).parameters else {}
        assert eps.simulate(function, [5, 6], [1.0, 1.0], size=1, **given)[0] == (2, 2)
    personal = eps.simulate(eps.personalize, [1] * 9, [1.0] * 9, algorithm=lambda data, epsilon: len(data), size=2)
    assert personal.tolist() == [9, 9]


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


def tell_exactly(part: str) -> Any:
    """Noise in the value, and beside it none: in the details, or in the sums that intervals are told from."""

    def draw(self: Any, question: Question, people: Any, entropy: Any) -> Answer:
        value, exact = Minimum().draw(question, people, entropy).value, float(np.nansum(people.values))
        return Answer(value, {"behind": exact}) if part == "details" else Answer(value, sums=[[Fraction(exact)]])

    return draw


@pytest.mark.parametrize("part", ["details", "sums"])
def test_a_mechanism_is_held_to_all_that_it_tells(part: str) -> None:
    broken = mechanism(draw=tell_exactly(part))
    assert not eps.audit(broken, [0.5, 1.0], statistic="count", draws=400).holds
    assert not approve(broken, "count", "absent")


def answer_exactly(self: Any, question: Question, people: Any, entropy: Any, size: int = 1) -> Any:
    """Every level's sum as it is, by the way that mixed answers are drawn."""
    (sums,) = question.statistic.tally(people)  # type: ignore[attr-defined]
    return self._means(question, people.levels, np.repeat(sums.astype(float), size, axis=1))


@pytest.mark.parametrize("method", ["level_answers", "many_answers"])
def test_a_mechanism_is_held_to_every_part_of_a_draw(method: str) -> None:
    told = {"name": "told", "gist": "as it says", "__module__": "another.package", method: answer_exactly}
    broken = dataclass(frozen=True)(type("Told", (MixedMean,), told))
    given: dict[str, Any] = {"statistic": "mean", "bounds": (0, 1), "missing": "center", "draws": 400}
    assert not eps.audit(broken, [0.5, 1.0], **given).holds
    assert not approve(broken, "mean", "absent")


def test_whatever_draws_is_known_to_the_audit() -> None:
    """A part of a draw that it does not know would be taken for the package's own."""
    kinds: list[Any] = [*OWN, *_subclasses(Statistic)]
    drawing = {
        name
        for kind in kinds
        for one in kind.__mro__
        if one.__module__.startswith("epsilons.")
        for name, method in vars(one).items()
        if "entropy" in getattr(method, "__annotations__", {})
    }
    assert drawing >= {"draw", "simulate", "level_answers", "noise", "settle", "sampled_tally"}
    assert drawing <= set(DRAWING)


def _subclasses(kind: type) -> list[type]:
    return [one for child in kind.__subclasses__() for one in (child, *_subclasses(child))]


def test_sums_that_a_mechanism_only_tells_of_are_not_believed() -> None:
    def weigh(_: Any, question: Any, levels: Any) -> Weighting:
        return Weighting((1,) * len(levels.grants), 1, Fraction(levels.smallest))

    def told(self: Any, question: Any, people: Any) -> Any:
        return Minimum().noisy_sums(question, type(people)(np.zeros_like(people.values), people.roster))

    kind = type("Sums", (Weighing,), {"name": "sums", "gist": "", "weigh": weigh, "noisy_sums": told})
    half = type("Half", (kind,), {"charge": lambda _, question, levels: (levels.smallest // 2,) * len(levels.grants)})
    assert eps.audit(dataclass(frozen=True)(kind), [0.5, 1.0]).holds
    assert not eps.audit(dataclass(frozen=True)(half), [0.5, 1.0]).holds
