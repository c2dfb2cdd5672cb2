"""How honest the numbers beside an answer are: a hundred settings, and what many answers in each of them show.

A setting is data: what is asked, of whom, how their values are spread and how far these are related to preferences. In
a run people get fresh values, and the question is asked once; the interval and the stated error are held against the
statistic of the very people on the roster. A relation is as large as the assumption g allows, in the direction that
moves the answer most: people who weigh less than the median person on one side, people who weigh more on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.options import ARRAYS, TABLES
from epsilons.arguments.reading import read_plan
from epsilons.mechanisms.base import Mechanism, Weighing, weighting_of
from epsilons.mechanisms.mixed import Mixed
from epsilons.planner.choose import choose
from epsilons.preferences import Levels, Roster, roster_of
from epsilons.release import Release, make_release
from epsilons.statistics.base import Question, RowScope, Scope
from epsilons.statistics.catalogue import find_statistic
from epsilons.statistics.order import Order
from epsilons.summaries import People
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.many_rows import ManyRows
from support.settings import PaperOne

Floats = NDArray[np.float64]
Random = np.random.Generator

BOUNDS = (0.0, 100.0)
PUBLIC = math.inf
#: Between which points a normal curve is told from a table: fast enough for millions of draws.
_PLACES = np.linspace(0.0, 1.0, 20_001)
_NORMAL = np.array([NormalDist().inv_cdf(min(max(place, 1e-6), 1 - 1e-6)) for place in _PLACES])

#: Values from even numbers between 0 and 1, ascending: a shape of data within the bounds.
SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda u: 45 + 15 * np.interp(u, _PLACES, _NORMAL),
    "narrow": lambda u: 70 + 3 * np.interp(u, _PLACES, _NORMAL),
    "uniform": lambda u: 100 * u,
    "skewed": lambda u: -9 * np.log1p(-np.minimum(u, 1 - 1e-9)),
    "discrete": lambda u: np.round(40 + 20 * np.interp(u, _PLACES, _NORMAL), -1),
    "two points": lambda u: np.where(u < 0.7, 0.0, 100.0),
    "rare": lambda u: np.where(u < 0.97, 0.0, 100.0),
    "two peaks": lambda u: np.where(u < 0.5, 25 + 20 * (u - 0.25), 75 + 20 * (u - 0.75)),
}

#: Everybody's epsilons.
ROSTERS: dict[str, Callable[[Random, int], Floats]] = {
    "paper": lambda random, people: PaperOne(people).epsilons(random),
    "alike": lambda random, people: np.full(people, 0.5),
    "two": lambda random, people: np.where(np.arange(people) % 2 == 0, 0.05, 1.0),
    "three": lambda random, people: random.choice([0.1, 0.5, 2.0], people, p=[0.5, 0.3, 0.2]),
    "strict": lambda random, people: random.choice([0.01, 0.05, 0.2], people),
    "many": lambda random, people: np.exp(random.normal(-1, 1, people)).clip(0.01, 8),
    "public": lambda random, people: random.choice([0.05, 0.3, 1.0, PUBLIC], people, p=[0.4, 0.3, 0.2, 0.1]),
    "few open": lambda random, people: np.where(random.random(people) < 0.03, 3.0, 0.02),
}


@dataclass(frozen=True)
class Setting:
    """What is asked of whom; `relation` is the part of the assumed g that is there, with the sign of its direction."""

    statistic: str
    roster: str = "paper"
    people: int = 1000
    shape: str = "normal"
    assume: float | str = 0.3
    relation: float = 0.0
    mechanism: str = "auto"
    #: Of counts: the fraction of ones. Of everything else: of people who have a value that counts.
    fraction: float = 1.0
    #: Of each group the fraction of people in it; rows may be of several groups.
    groups: tuple[float, ...] = ()
    rows: int = 1
    #: Whether the rows of a table are asked about, by a condition, not the values of an array.
    where: bool = False
    #: Whether all rows of a person are alike, and in one group.
    together: bool = True
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        said = [self.statistic, *(f"{key}={value}" for key, value in self.more.items())]
        said += [f"{self.people} {self.roster}", self.shape, f"assume {self.assume}"]
        said += [f"relation {self.relation:g}"] * (self.relation != 0) + [self.mechanism] * (self.mechanism != "auto")
        said += [f"{self.fraction:g} count"] * (self.fraction < 1) + ["where"] * self.where
        said += [f"groups {self.groups}"] * bool(self.groups) + [f"{self.rows} rows"] * (self.rows > 1)
        return ", ".join(map(str, said)) + ("" if self.together else " apart")

    @property
    def on_rows(self) -> bool:
        return self.where or bool(self.groups) or self.rows > 1


@dataclass(frozen=True, eq=False)
class Asked:
    """A setting with its roster: the question, who answers it, and who gets which values."""

    setting: Setting
    roster: Roster
    question: Question
    mechanism: Mechanism

    @classmethod
    def of(cls, setting: Setting, seed: int) -> Asked:
        roster = roster_of(ROSTERS[setting.roster](np.random.default_rng(seed), setting.people))
        entry = find_statistic(setting.statistic)
        given: dict[str, Any] = {"assume": setting.assume, "mechanism": setting.mechanism, **setting.more}
        if "bounds" in entry.own(ARRAYS):
            given["bounds"] = BOUNDS
        front = TABLES if setting.on_rows else ARRAYS
        call = read_plan(entry, front, given, column=None)
        options = replace(call.options, where="wage > 0") if setting.where else call.options
        groups = tuple(range(len(setting.groups))) or None
        if groups is not None:
            options = replace(options, by={"region": list(groups)})
        column = setting.statistic != "count" or not setting.on_rows
        over, _ = RowScope(Scope(setting.rows, groups), column=column).asked(entry, options)
        question = Question.of(entry.build(call.own, over), options, "absent")
        mechanism, _ = choose(options.mechanism, question, roster.levels, options.settings)
        return cls(setting, roster, question, mechanism)

    @cached_property
    def tilt(self) -> Floats:
        """For each person how far their level goes, from -1 to 1: 0 over all people, in the worst of all directions."""
        return self.tilted(1.0, 1.0)

    def tilted(self, down: float, up: float) -> Floats:
        """The same from `-down` to `up`: who weighs most goes up, as many as the others can go down for."""
        levels = self.roster.levels
        weights, sizes = person_weights(self.mechanism, self.question, levels), np.array(levels.sizes, float)
        order = np.argsort(-weights, kind="stable")
        before = np.cumsum(sizes[order]) - sizes[order]
        part = np.clip((sizes.sum() * down / max(down + up, 1e-12) - before) / sizes[order], 0.0, 1.0)
        return ((down + up) * part - down)[np.argsort(order)][self.roster.codes]

    @cached_property
    def far(self) -> float:
        """The assumed distance in spreads that is there, with its direction."""
        g = self.question.assume
        return self.setting.relation * (1.0 if math.isinf(g) else g)

    def people_of(self, random: Random) -> tuple[People, list[float]]:
        """Fresh values for everyone, and the truth about them."""
        setting = self.setting
        if setting.on_rows:
            made = self._rows(random)
            return cast(People, made), true_of_rows(made, self.question.statistic)
        if setting.statistic == "count":
            values = (random.random(setting.people) < self._chance(setting.fraction)).astype(float)
        else:
            values = self._values(random, np.arange(setting.people))
            values[random.random(setting.people) >= setting.fraction] = np.nan
        return ArrayPeople.of(values, self.roster), true_of_values(values, self.question.statistic, setting)

    def _chance(self, fraction: float) -> Floats:
        """Of a one, for each person: as far from everyone's as is assumed, or as there are people."""
        if math.isinf(self.question.assume):
            return np.clip(fraction + self.far * np.sign(self.tilt), 0.0, 1.0)
        return fraction + self._off(math.sqrt(fraction * (1 - fraction)), fraction, 1 - fraction)

    def _off(self, spread: float, below: float, above: float) -> Floats:
        """How far each person's level is off: as far as is assumed, and no further than is possible."""
        away = abs(self.far) * spread
        down, up = min(away, below), min(away, above)
        return self.tilted(down, up) if self.far > 0 else -self.tilted(up, down)

    def _values(self, random: Random, person: NDArray[np.int64]) -> Floats:
        """A value for each of these people."""
        shape, statistic, even = SHAPES[self.setting.shape], self.question.statistic, random.random(len(person))
        tilt = self.tilt[person]
        if self.far == 0:
            return np.clip(shape(even), *BOUNDS)
        if math.isinf(self.question.assume):  # the strict on one side of everything, the open on the other
            return np.clip(shape((even / 2 + 0.5 * (self.far * tilt > 0)).clip(0, 1)), *BOUNDS)
        related = statistic.related(self.question)[1]
        if self.setting.statistic == "histogram":
            parts, luck = BINS[self.setting.shape], random.random((len(tilt), 1))
            upto = np.cumsum(parts + tilt[:, None] * self._away(parts), axis=1)
            place = (luck >= upto[:, :-1]).sum(axis=1)
            return np.clip(shape((np.cumsum(parts) - parts)[place] + parts[place] * even), *BOUNDS)
        if isinstance(statistic, Order):
            q = float(statistic.q_asked)
            below = np.clip(q + self.far * math.sqrt(q * (1 - q)) * tilt, 0.0, 1.0)
            left = random.random(len(tilt)) < below
            return np.clip(shape(np.where(left, q * even, q + (1 - q) * even)), *BOUNDS)
        values = np.clip(shape(even), *BOUNDS)
        if self.setting.statistic == "variance":
            # Some stand nearer to the middle; of the others a part stands at the bounds, around the same middle.
            all_values = np.clip(shape(_PLACES), *BOUNDS)
            middle, square, (low, high) = float(all_values.mean()), float(all_values.var()), BOUNDS
            room = max((high - middle) * (middle - low) - square, 1e-9)
            off = self._off(related, square, room)[person]
            nearer = middle + (values - middle) * np.sqrt(np.clip(1 + off / square, 0.0, 1.0))
            bound = np.where(random.random(len(off)) < (middle - low) / (high - low), high, low)
            return np.where(random.random(len(off)) < off / room, bound, nearer)
        part = 1.0 if statistic.scope is None or self.setting.statistic == "mean" else self._counted
        return np.clip(values + self.far * related / part * tilt, *BOUNDS)

    def _away(self, parts: Floats) -> Floats:
        """How far levels are off in each bin: as far as is assumed, up in some of them, down in the others."""
        counted = self.setting.fraction * parts
        away = np.minimum(abs(self.far) * np.sqrt(counted * (1 - counted)) / self.setting.fraction, parts)
        sums, sides = np.zeros(2), np.zeros(len(parts), int)
        for place in np.argsort(-away):
            sides[place] = sums.argmin()
            sums[sides[place]] += away[place]
        ways = math.copysign(sums.min(), self.far) * np.array([1.0, -1.0]) / np.maximum(sums, 1e-12)
        return cast(Floats, away * ways[sides])

    @property
    def _counted(self) -> float:
        """How many rows of a person count on average, in the largest group."""
        return max(self.setting.groups or (self.setting.fraction,)) * (1 + self.setting.rows) / 2

    def _rows(self, random: Random) -> ManyRows:
        setting = self.setting
        each = random.integers(1, setting.rows + 1, setting.people)
        person = np.repeat(np.arange(setting.people), each)
        count = setting.people if setting.together else len(person)
        of_row = person if setting.together else np.arange(len(person))
        owner = np.arange(setting.people) if setting.together else person
        parts = setting.groups or (setting.fraction,)
        if setting.statistic == "count":
            chances = np.array([self._chance(part) for part in parts]).T
            chances = chances[owner]
            chances = chances / np.maximum(chances.sum(axis=1, keepdims=True), 1.0)
        else:
            chances = np.broadcast_to(parts, (count, len(parts)))
        upto, luck = np.cumsum(chances, axis=1), random.random(count)
        place = np.where(luck < upto[:, -1], (luck[:, None] >= upto).sum(axis=1), -1)
        values = self._values(random, owner) if setting.statistic != "count" else np.ones(count)
        return ManyRows(self.roster, person, place[of_row].astype(np.int64), values[of_row])


EDGES = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
#: The parts of people in the bins of the histograms that are asked for, by shape.
BINS = {name: np.histogram(np.clip(shape(_PLACES), *BOUNDS), EDGES)[0] / len(_PLACES) for name, shape in SHAPES.items()}


def person_weights(mechanism: Mechanism, question: Question, levels: Levels) -> Floats:
    """How much a person of each level counts; where people do not weigh, the more open, the more."""
    if isinstance(mechanism, Weighing):
        return weighting_of(mechanism, question, levels).fractions
    if isinstance(mechanism, Mixed):
        return mechanism.shares(question, levels) / np.array(levels.sizes, float)
    return np.arange(len(levels.sizes), dtype=float)


def true_of_values(values: Floats, statistic: Any, setting: Setting) -> list[float]:
    there = np.clip(values[~np.isnan(values)], *BOUNDS) if setting.statistic != "count" else values
    if setting.statistic == "histogram":
        return [float(number) for number in np.histogram(there, EDGES)[0]]
    if setting.statistic == "count":
        return [float(there.sum())]
    if len(there) == 0:
        return [math.nan]
    if isinstance(statistic, Order):
        return [_on_grid(statistic, float(np.sort(there)[statistic.rank(len(there))]))]
    return [float({"sum": np.sum, "mean": np.mean, "variance": np.var}[setting.statistic](there))]


def true_of_rows(rows: ManyRows, statistic: Any) -> list[float]:
    found = rows.truth(statistic)
    none = [not (rows.group == place).any() for place in range(statistic.scope.cells)]
    if isinstance(statistic, Order):
        found = [_on_grid(statistic, number) for number in found]
    if statistic.name in ("count", "sum"):
        return found
    return [math.nan if empty else number for number, empty in zip(found, none, strict=True)]


def _on_grid(statistic: Order, number: float) -> float:
    cell = math.floor((number - statistic.bounds[0]) / float(statistic.spacing) + 0.5)
    return float(statistic.value(min(cell, statistic.points - 1)))


@dataclass(frozen=True)
class Seen:
    """What many runs of a setting show: of each number of an answer, in columns."""

    mechanism: str
    runs: int
    #: Of every run the number whose interval was looked at, whether it held the truth, and how wide it was.
    looked: NDArray[np.int64]
    held: NDArray[np.bool_]
    widths: Floats
    #: Squared errors and stated errors, NaN where none was stated.
    squares: Floats
    stated: Floats

    @property
    def covered(self) -> float:
        return float(self.held.mean())

    @property
    def rmse(self) -> Floats:
        return np.sqrt(np.nanmean(self.squares, axis=0))

    @property
    def unstated(self) -> float:
        """How often no error was stated."""
        return float(np.isnan(self.stated).mean())

    def _errors(self, seldom: float) -> tuple[Floats, Floats]:
        """(real, stated) of the numbers whose error is not stated seldom: both of the runs in which it is."""
        there = ~np.isnan(self.stated)
        often = there.mean(axis=0) >= seldom
        squares = np.where(there, self.squares, np.nan)[:, often]
        return np.sqrt(np.nanmean(squares, axis=0)), np.nanmean(self.stated[:, often], axis=0)

    def too_small(self, seldom: float = 0.1) -> float:
        """How many times the real error of a number is the stated one, at worst."""
        real, stated = self._errors(seldom)
        return float((real / np.maximum(stated, 1e-12)).max(initial=0.0))

    def stated_over_real(self, seldom: float = 0.1) -> float:
        """The typical ratio of both; not a number where none is stated."""
        real, stated = self._errors(seldom)
        if len(real) == 0 or min(real.min(), stated.min()) <= 0:
            return math.nan
        return float(np.exp(np.mean(np.log(stated / real))))

    @property
    def summary(self) -> str:
        """For people who want to know what did not hold."""
        each = [f"{self.covered_of(number)[0]:.3f}" for number in range(self.squares.shape[1])]
        said = f"{self.mechanism} covers {self.covered:.4f} ({', '.join(each)})"
        times = f"{self.too_small():.2f} times those stated, none in {self.unstated:.0%}"
        return f"{said}, errors {self.rmse.round(4)}, {times}"

    def covered_of(self, number: int) -> tuple[float, int]:
        """(how often the interval of one number held the truth, of how many)."""
        here = self.looked == number
        return float(self.held[here].mean()) if here.any() else 1.0, int(here.sum())


def measure(
    setting: Setting,
    runs: int,
    seed: int,
    asked: Asked | None = None,
    spoil: Callable[[Release], Release] = lambda release: release,
) -> Seen:
    """Ask many times, with fresh values and fresh noise; of several numbers the intervals are looked at in turn."""
    asked = asked or Asked.of(setting, seed)
    random, entropy = np.random.default_rng([seed, 1]), seeded(seed)
    looked, held, widths, squares, stated = [], [], [], [], []
    for run in range(runs):
        people, truth = asked.people_of(random)
        release = spoil(make_release(asked.mechanism, asked.question, people, entropy, ""))
        numbers, errors = numbers_of(release)
        place = run % len(numbers)
        if release.models is not None and not math.isnan(truth[place]):
            low, high = release.models[place].interval(numbers[place], 0.95, False)
            close = 1e-6 * (1 + abs(truth[place]))  # values lie on grids
            looked.append(place)
            held.append(low - close <= truth[place] <= high + close)
            widths.append(high - low)
        squares.append([(number - true) ** 2 for number, true in zip(numbers, truth, strict=True)])
        stated.append(errors)
    return Seen(
        asked.mechanism.name,
        runs,
        np.array(looked, np.int64),
        np.array(held, np.bool_),
        np.array(widths),
        np.array(squares),
        np.array(stated),
    )


def numbers_of(release: Release) -> tuple[list[float], list[float]]:
    """The numbers of an answer, and the error stated of each."""
    numbers = list(release.value.values()) if isinstance(release.value, dict) else [release.value]
    errors = list(release.error.values()) if isinstance(release.error, dict) else [release.error] * len(numbers)
    return [float(number) for number in numbers], [math.nan if error is None else float(error) for error in errors]


#: Shapes with gaps: how far a quantile errs depends on which side of one it falls.
GAPS = ("two points", "rare", "two peaks", "discrete")


def draw_setting(random: Random, order: bool, gaps: bool = False) -> Setting:
    """A random setting of which the caller tells nothing: of an additive statistic or a variance, or of a quantile.

    Values are related to preferences as far as the default assumption allows: that is what errors are stated for.
    Quantiles are of values that are spread, or, with `gaps`, of those that are not.
    """
    name = str(random.choice(["median", "quantile"] if order else ["count", "histogram", "sum", "mean", "variance"]))
    more: dict[str, Any] = {"edges": EDGES} if name == "histogram" else {}
    if name == "quantile":
        more["q"] = float(random.choice([0.1, 0.25, 0.75, 0.9]))
    whole = name not in ("count", "histogram") and random.random() < 0.5
    fraction = 1.0
    if name == "count":
        fraction = float(random.choice([0.02, 0.1, 0.3, 0.5, 0.8]))
    elif not whole and random.random() < 0.5:
        fraction = float(random.choice([0.1, 0.3, 0.7]))
    shapes = [shape for shape in SHAPES if not order or (shape in GAPS) == gaps]
    roster, people = str(random.choice(list(ROSTERS))), int(10 ** random.uniform(2.3, 3.7))
    found = Setting(name, roster, people, str(random.choice(shapes)), fraction=fraction)
    more = {**more, "complete": True} if whole else more
    more = {**more, "for_interval": float(random.choice([0.4, 0.6]))} if order else more
    return replace(found, relation=1.0, more=more)
