"""How far people's preferences may be related to their values, and whether noisy answers per level contradict it.

The assumption g of a question says: no level's expected mean lies further than g spreads from everyone's. If weights
differ, an answer may then be off by g spreads times `uneven`, whoever has which values (docs/theory.md, "related").
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from epsilons.accuracy.intervals import half_width, normal_two_sided
from epsilons.arguments.checks import ASSUMPTIONS, Bought
from epsilons.arguments.reading import AT_CENTRE, tell_centred
from epsilons.display import Sheet, Shown, show, show_count
from epsilons.errors import Argument, PlanError
from epsilons.noise.entropy import working_precision

#: Below this chance under "unrelated" the sentence says that preferences and values look related.
SUSPICIOUS = 0.01
#: How much less, or more, than they are is taken for bounds on what is found by bisection.
_SLACK = 1e-6


#: What a relation speaks of.
WHOLE = "A relation is about everyone, each with one value."
#: The two ends of what can be assumed, as a clause that follows a number, and how a guess is joined to it.
_HOLDS = {
    ASSUMPTIONS["unrelated"]: ("if preferences and values are unrelated", ", and "),
    ASSUMPTIONS["nothing"]: ("however preferences and values relate", ", if "),
}


def holds(assumption: str) -> str:
    """When an error or an interval holds, as a clause that follows it."""
    for told, (clause, joined) in _HOLDS.items():
        if assumption.startswith(told):
            return clause + assumption.removeprefix(told).replace(", and ", joined, 1)
    return f"if {assumption}"


@dataclass(frozen=True)
class LevelAnswer:
    """One level's own noisy mean: its weight in the mix, the variance of who stands there, and its noise."""

    level: str
    people: int
    answer: float
    weight: float
    sampling_variance: float
    noise_scale: float

    @property
    def variance(self) -> float:
        """Of the noisy mean around a common mean."""
        return self.sampling_variance + 2 * self.noise_scale**2

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Relation(Shown):
    """How far levels' expected means can lie from everyone's, by each level's own noisy mean.

    `distance` is the largest with a confidence of `confidence`, in the units of the column, and `bound` in spreads. As
    `assume` it serves means and sums of the same values over everyone, at no further charge. `chance` is that of levels
    as different as these, or more, if all had the same expected mean. `given` names a spread that was taken at its
    word; without one, people's luck is that of the largest spread that each level's own answer leaves possible.
    """

    levels: tuple[LevelAnswer, ...]
    spread: float
    given: str = ""
    confidence: float = 0.95
    #: Which values it is about: bounds and column; whether some stood at the centre; and the release it was bought by.
    within: str = ""
    column: str = ""
    imputed: bool = False
    number: int | None = None
    dataset: str = ""
    version: str = ""
    #: People who had nothing left to spend, so that no level's answer holds their values, and how wide the bounds are.
    left_out: int = 0
    width: float = 0.0

    @classmethod
    def of(cls, levels: Sequence[Mapping[str, Any]], told: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """Of the levels' own answers, as a mixed mean releases them anyway, and what was told of them then.

        Answers of an earlier version did not tell the spread: theirs was that of every level.
        """
        rows = tuple(LevelAnswer(**row) for row in levels if row["people"] > 0)
        alike = math.sqrt(rows[0].sampling_variance * rows[0].people) if rows else 0.0
        unseen = {name: told[name] for name in ("left_out", "width") if name in told}
        return cls(rows, told.get("spread", alike), told.get("given", ""), **unseen)

    @classmethod
    def bought_by(cls, answer: Any) -> Self:
        """What the release of a mixed mean says about the values that it was asked of; no other release does.

        What levels tell of a part of the rows, or of a median, is no distance of everyone's means.
        """
        if answer is None or "relation" not in answer.details:
            raise PlanError("This release found no relation.", suggest=Argument("assume", 0.3))
        about = {name: getattr(answer, name) for name in ("column", "number", "dataset", "version")}
        about |= {"within": answer.statistic.partition(" ")[2]}
        found = cls.of(answer.details["levels"], answer.details["relation"])
        return replace(found, **about, imputed=bool(tell_centred(answer.guarantee.caveats)))

    @staticmethod
    def question(options: Mapping[str, Any], whole: bool) -> dict[str, Any]:
        """The options of the mean that is asked for: every level by itself, people without a value at the centre.

        Of values that are `whole`, by type or by the steward's word, none is missing.
        """
        for name in (one for one in ("where", "by") if options.get(one) is not None):
            raise PlanError(WHOLE, rule=f"It takes no {name!r}.", suggest=("leave ", Argument(name), " out"))
        if options.get("mechanism", "mixed") != "mixed":
            rule, other = "Mixed asks each.", ("leave ", Argument("mechanism"), " out")
            raise PlanError("A relation is what levels say by themselves.", rule=rule, suggest=other)
        if options.get("missing") == "exclude":
            hint = (Argument("missing", "center"), ", or ", Argument("complete", True), " if nothing is missing")
            raise PlanError(WHOLE, rule="Whoever has no value stands at the centre.", suggest=hint)
        centred = {} if whole or options.get("complete") else {"missing": "center"}
        return {"mechanism": "mixed", "assume": "unrelated", **centred, **options}

    @cached_property
    def _deviations(self) -> tuple[tuple[float, float, float], ...]:
        """(distance of each level's mean from everyone's; the Laplace scale and the normal spread of its error)."""
        people = np.array([row.people for row in self.levels], float)
        share = people / people.sum()
        means = np.array([row.answer for row in self.levels])
        varied = np.array([row.variance for row in self.levels])
        away, others = (means - share @ means).tolist(), float(share**2 @ varied)
        found = []
        for row, part, distance in zip(self.levels, share.tolist(), away, strict=True):
            rest = others - part**2 * row.variance + (1 - part) ** 2 * row.sampling_variance
            found.append((distance, (1 - part) * row.noise_scale, math.sqrt(max(rest, 0.0))))
        return tuple(found)

    @property
    def _each(self) -> float:
        """The confidence of one level's distance, so that all hold together."""
        return 1 - (1 - self.confidence) / max(len(self.levels), 1)

    @property
    def _unseen(self) -> float:
        """The part of the roster whose values are in no level's answer."""
        return self.left_out / max(self.left_out + sum(row.people for row in self.levels), 1)

    @cached_property
    def distances(self) -> tuple[tuple[float, float], ...]:
        """(distance of each level's mean from everyone's, how far that is off at most), of all levels at once."""
        unseen = self._unseen * self.width
        return tuple(
            (away, half_width((scale,), normal, self._each) + unseen) for away, scale, normal in self._deviations
        )

    def _furthest(self, sign: int) -> float:
        """The largest of distances, more or less what they may be off, or 0: only those that may be it are worked out.

        What a sum of two noises may be off is at least what each may be, and at most what both may be together at half
        the chance.
        """
        chance = 1 - self._each
        flat, normal = -math.log(chance) * (1 - _SLACK), normal_two_sided(1 - chance) * (1 - _SLACK)
        twice, wide = -math.log(chance / 2) * (1 + _SLACK), normal_two_sided(1 - chance / 2) * (1 + _SLACK)
        ends = []
        for away, b, s in self._deviations:
            fewest, most = max(b * flat, s * normal), b * twice + s * wide
            ends.append(sorted((abs(away) + sign * fewest, abs(away) + sign * most)))
        least = max([0.0, *(low for low, _ in ends)])
        tried = [one for one, (_, high) in zip(self._deviations, ends, strict=True) if high >= least]
        return max([0.0, *(abs(away) + sign * half_width((b,), s, self._each) for away, b, s in tried)])

    @cached_property
    def distance(self) -> float:
        """No level's expected mean is further from everyone's, in the units of the column.

        Of a part of the roster that no answer holds the mean may be anything: it moves everyone's by that part of the
        width at most, and may itself lie as far off as the rest allows.
        """
        unseen = self._unseen
        return max(self._furthest(1) + unseen * self.width, (1 - unseen) * self.width if unseen else 0.0)

    @property
    def bound(self) -> float:
        """The same in spreads."""
        return self.distance / max(self.spread, 1e-300)

    @property
    def bought(self) -> Bought:
        """What `assume` takes of it."""
        where = "" if self.number is None else f" by release {self.number}"
        where += f" of version {self.version}" if self.version else ""
        sure = f"{self.confidence:.0%} sure{self._if_given}"
        return Bought(self.distance, self.within, self.column, f"as was found{where}, {sure}", self.dataset)

    @property
    def _if_given(self) -> str:
        """The condition that it rests on, as a clause that follows a number."""
        return f" if {self.given}" if self.given else ""

    @cached_property
    def least(self) -> float:
        """Some level's expected mean is at least so far from everyone's, in spreads.

        The mean of those who were asked is off by what the others are off, times these per person who was asked, and by
        no more than the furthest level.
        """
        unseen = self._unseen
        among = 1 + min(1.0, unseen / max(1 - unseen, 1e-300))
        return self._furthest(-1) / among / max(self.spread, 1e-300)

    @cached_property
    def chance(self) -> float:
        """With sum (a_j - m)^2/v_j around the precision-weighted mean m.

        With normal errors it is chi-square with k-1 degrees of freedom; Laplace noise has heavier tails (excess
        kurtosis 3), so a gamma curve with the right mean and variance, 2(k-1) + sum of the answers' excess kurtosis,
        takes its place.
        """
        degrees = len(self.levels) - 1
        if degrees < 1:
            return 1.0
        precision = np.array([1 / row.variance for row in self.levels])
        means = np.array([row.answer for row in self.levels])
        statistic = float(precision @ (means - precision @ means / precision.sum()) ** 2)
        noisiness = np.array([2 * row.noise_scale**2 / row.variance for row in self.levels])
        variance = 2 * degrees + 3 * float((noisiness * (1 - precision / precision.sum())) ** 2 @ np.ones(degrees + 1))
        return _gamma_tail(degrees**2 / variance, statistic * degrees / variance)

    @property
    def sentence(self) -> str:
        """What follows, in plain words."""
        if len(self.levels) < 2:
            return "There is only one level to look at."
        far = f"no level's expected mean is further than {show(self.distance)} from everyone's"
        start = "Nothing suggests that people's preferences are related to their values"
        if self.chance < SUSPICIOUS:
            start = "People's preferences look related to their values"
        told = f"{start} (chance {self.chance:.2g}); {far}, which is {show(self.bound)} spreads of {show(self.spread)}"
        told = f"{told}{self._if_given}."
        if self.left_out:
            told += f" {show_count(self.left_out, 'person has', 'people have')} nothing left to spend, and any mean."
        return f"{told} {AT_CENTRE}" if self.imputed else told

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        told = {"bound": self.bound, "distance": self.distance, "least": self.least, "chance": self.chance}
        unseen = {"left_out": self.left_out, "width": self.width} if self.left_out else {}
        return {**told, "spread": self.spread, "given": self.given, **unseen, "sentence": self.sentence}

    def sheets(self) -> list[Sheet]:
        rows = [
            [row.level, show_count(row.people, "person", "people"), show(row.answer), f"{show(away)} ± {show(off)}"]
            for row, (away, off) in zip(self.levels, self.distances, strict=True)
        ]
        notes = [self.sentence, "Means and sums of these values take it as assume, at no further charge."]
        return [Sheet("", ("level", "people", "noisy mean", "from everyone's"), rows, notes)]


def contradicts(found: Relation, assumed: float, among: int = 1) -> bool:
    """Whether levels differ more than was assumed, one of several answers: by a distance beyond it; of 0, a chance."""
    sure = replace(found, confidence=1 - (1 - found.confidence) / among)
    return sure.least > assumed if assumed > 0 else sure.chance < SUSPICIOUS / among


def _gamma_tail(shape: float, x: float) -> float:
    """P(Gamma(shape) > x)."""
    import flint

    if x <= 0:
        return 1.0
    with working_precision(64):
        tail = flint.arb(x).gamma_upper(flint.arb(shape), regularized=1)
    return min(max(float(tail.mid()), 0.0), 1.0)
