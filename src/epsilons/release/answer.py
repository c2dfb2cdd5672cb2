"""An answer with its error, its promise and its price."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

from epsilons import guarantee as promises
from epsilons.accuracy.additive import Errors
from epsilons.accuracy.count import CountBar
from epsilons.accuracy.intervals import (
    ErrorBar,
    ErrorModel,
    ExactBar,
    FractionBar,
    GaussianRatioBar,
    LevelsRatioBar,
    RatioBar,
)
from epsilons.accuracy.quantiles import QuantileBar
from epsilons.accuracy.relation import holds
from epsilons.accuracy.variance import GaussianVarianceBar, VarianceBar
from epsilons.arguments.checks import ASSUMPTIONS, check_confidence, check_name
from epsilons.arguments.reading import tell_centred
from epsilons.display import Sheet, Shown, show, show_key, show_result
from epsilons.errors import PlanError, printable
from epsilons.guarantee import NOT_DP, PUBLIC_PEOPLE, ROSTER_IS_PUBLIC, SEEDED, Covered, Guarantee, to_epsilon
from epsilons.mechanisms.base import Account, Mechanism, charges_of
from epsilons.noise.entropy import Entropy, is_private
from epsilons.preferences import Levels
from epsilons.statistics.base import Question
from epsilons.summaries import People

if TYPE_CHECKING:
    import pandas
    import pyarrow

FORMAT = 1
_MOST_LEVELS = 8
_MORE_ROWS = "how many rows more of the best option there"
#: The mechanism of a roster on which everyone is public.
EXACT = "exact"
EVERYONE_PUBLIC = "Everyone on the roster chose public, so the exact answer is released."
#: What only answers about a table have, and answers stored by an earlier version have not.
_CITED: dict[str, Any] = {
    "dataset": "", "version": "", "column": "", "where": "", "by": (), "at": "", "number": None
}  # fmt: skip
_KINDS = (ErrorModel, ExactBar, CountBar, FractionBar, RatioBar, QuantileBar, VarianceBar)
_OTHERS = (GaussianRatioBar, LevelsRatioBar, GaussianVarianceBar)
_BARS: dict[str, type[ErrorBar]] = {bar.__name__: bar for bar in (*_KINDS, *_OTHERS)}
#: Keys that JSON does not know: their type, and how they are read back.
_TAGGED: dict[str, tuple[type, Callable[[str], Hashable]]] = {
    "decimal": (Decimal, Decimal),
    "fraction": (Fraction, Fraction),
    "datetime": (datetime.datetime, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.fromisoformat),
}


@dataclass(frozen=True)
class Release(Shown):
    """One released answer. Everything here is public: it comes from the noisy answer and from public facts."""

    statistic: str
    value: Any
    #: Of a number, or of each under its key; None where nothing honest can be said.
    error: Errors
    mechanism: str
    why: str
    guarantee: Guarantee
    charges: Mapping[float, float]
    levels: Mapping[float, str]
    assumption: str
    models: tuple[ErrorBar, ...] | None = None
    no_interval: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    #: Of a table: which data it is about (`where` is empty for all rows), when it was charged (UTC), and its number in
    #: the ledger.
    dataset: str = ""
    version: str = ""
    column: str = ""
    where: str = ""
    by: tuple[str, ...] = ()
    at: str = ""
    number: int | None = None

    @property
    def private(self) -> bool:
        """False when the randomness was seeded: such an answer protects nobody."""
        return SEEDED not in self.guarantee.caveats

    def about(self, covered: Covered | None, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> Release:
        """This release with the people it is about, so that its promise adds up with others person by person.

        `first` and `last` are caveats that stand before and behind its own.
        """
        said = self.guarantee
        return replace(self, guarantee=replace(said, covers=covered, caveats=(*first, *said.caveats, *last)))

    @property
    def question(self) -> str:
        """What was asked, in a line: "mean in [0, 100] of wage where age >= 30 by region"; how, if gaps are filled."""
        return tell_question(self.statistic, self.column, self.where, self.by) + tell_centred(self.guarantee.caveats)

    @property
    def citation(self) -> str:
        """Where it is found again: "wages, version 2026-11, release 17 of 2026-11-16"; empty for arrays."""
        return cite(self)

    def interval(self, confidence: float = 0.95, target: str = "roster") -> Any:
        """Where the statistic of the people on the roster lies; `target="population"` adds who happened to be asked.

        For a table of numbers a dict of intervals, one for each key. Holds under `release.assumption`.
        """
        confidence = check_confidence(confidence)
        population = check_name("target", target, ("roster", "population")) == "population"
        numbers = self.value if isinstance(self.value, dict) else {None: self.value}
        if self.mechanism == EXACT and not (population or self.models or self.no_interval):
            found = {key: (value, value) for key, value in numbers.items()}
        elif self.models is None or (self.mechanism == EXACT and population):
            rule = self.no_interval or "It is exact for the people on the roster, and says nothing of others."
            raise PlanError("There is no honest interval for this answer.", rule=rule)
        else:
            pairs = zip(numbers.items(), self.models, strict=True)
            ends = [(k, bar.interval(float(v), confidence, population)) for (k, v), bar in pairs]
            found = {k: (float(low), float(high)) for k, (low, high) in ends}
        return found if isinstance(self.value, dict) else found[None]

    @property
    def no_error(self) -> str:
        """Why nothing is said of the error, or of that of some groups; empty where it is said of all."""
        stated = self.error.values() if isinstance(self.error, dict) else (self.error,)
        return "" if None not in stated else self.models[0].no_error if self.models else self.no_interval

    @property
    def chosen(self) -> bool:
        """Whether it is one or several of the caller's options: words, also where they look like numbers."""
        return self.statistic.startswith(("mode of ", "top ", "choice among "))

    @property
    def error_source(self) -> str:
        """What an error rests on that no released number bears out, or of a model or option what it is the error of."""
        if self.error and self.chosen:  # a choice by a score of one's own states none
            return (
                f" ({'how much larger the best total' if ' by ' in self.statistic else _MORE_ROWS} may be, on average)"
            )
        if not self.error or self.models is not None or isinstance(self.error, dict):
            return ""
        if isinstance(self.value, dict):  # one error for all coefficients together
            return f" in predicted {'probabilities' if self.statistic.startswith('logistic') else 'values'}"
        return " by the plan's guesses"

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON, and `from_dict` undoes."""
        value = _plain_table(self.value)
        finite = {granted: granted for granted in (*self.charges, *self.levels) if math.isfinite(granted)}
        if not isinstance(self.value, dict | str | Real | None):
            value = {"list": _listed(value)}
        return {
            "format": FORMAT,
            **{name: part for name, part in vars(self).items() if name not in _CITED or part or self.number},
            "value": value,
            "error": _plain_table(self.error),
            "guarantee": self.guarantee.to_dict(),
            "charges": [[finite.get(granted), spent] for granted, spent in self.charges.items()],
            "levels": [[finite.get(granted), name] for granted, name in self.levels.items()],
            "models": None if self.models is None else [plain_bar(bar) for bar in self.models],
            "details": dict(self.details),
            **({"by": list(self.by)} if self.by or self.number else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """The inverse of `to_dict`."""
        try:
            parts = {one.name: {**_CITED, **data}[one.name] for one in fields(cls)}
            value, models, parts["by"] = parts["value"], parts["models"], tuple(parts["by"])
            parts |= {name: _read_table(parts[name]) for name in ("value", "error")}
            if isinstance(value, dict):
                parts["value"] = value["list"]
            parts |= {"guarantee": Guarantee.from_dict(parts["guarantee"]), "details": dict(parts["details"])}
            for name in ("charges", "levels"):
                parts[name] = {math.inf if granted is None else granted: one for granted, one in parts[name]}
            parts["models"] = None if models is None else tuple([read_bar(bar) for bar in models])
            if data["format"] == FORMAT:
                return cls(**parts)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            pass
        raise PlanError(f"This is not a release in format {FORMAT}.", suggest="the dict of a release")

    def to_arrow(self) -> pyarrow.Table:
        """One row per key; a single number is one row without a key."""
        try:
            import pyarrow as pa
        except ImportError:
            raise PlanError("Tables of Arrow need pyarrow.", suggest="pip install 'epsilons[tables]'") from None

        if not isinstance(self.value, dict):
            return pa.table({"value": [self.value]})
        keys: list[Any] = list(self.value)
        if keys and all(isinstance(key, tuple) for key in keys):
            # The key of a group and its bin is (group, (low, high)); bins alone follow one another.
            binned = isinstance(keys[0][-1], tuple) or all(one[1] == other[0] for one, other in pairwise(keys))
            flat = [tuple(part for one in key for part in (one if isinstance(one, tuple) else (one,))) for key in keys]
            names = [f"key{i + 1}" for i in range(len(flat[0]))]
            if self.statistic.startswith("histogram") and binned:
                names[-2:] = ["low", "high"]
            columns = {name: [key[i] for key in flat] for i, name in enumerate(names)}
        else:
            columns = {"key": keys if len({type(key) for key in keys}) <= 1 else [str(key) for key in keys]}
        return pa.table({**columns, "value": list(self.value.values())})

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas frame of it."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise PlanError("Frames need pandas.", suggest="pip install pandas") from None

    def __str__(self) -> str:
        told = show_result if self.chosen else show
        if isinstance(self.value, dict):
            errors = self.error if isinstance(self.error, dict) else {}
            bars = {key: f" ± {'unknown' if error is None else show(error)}" for key, error in errors.items()}
            first = list(self.value.items())[:6]
            shown = "{" + ", ".join(f"{show_key(k)}: {told(v)}{bars.get(k, '')}" for k, v in first)
            shown += ", ...}" if len(self.value) > 6 else "}"
        else:
            shown = told(self.value)
        silent = not self.error and (self.chosen or not isinstance(self.value, Real))
        known = "unknown" if self.error is None else show(self.error)
        error = "" if silent else f" ± {known}{self.error_source}"
        error = self.error_source if isinstance(self.error, dict) else error
        since = "".join(f" [{caveat[:-1]}]" for caveat in self.guarantee.caveats if caveat.startswith(NOT_DP))
        warning = since if self.private else " [NOT PRIVATE: seeded]"
        bare = silent or self.mechanism == EXACT or (self.error == 0 and not self.models)
        held = "" if bare else f" {holds(self.assumption)}"
        if self.details.get("rescaled") and not isinstance(self.value, str):  # the totals of a sample
            held = f", rescaled by chances of being in the sample, right {holds(self.assumption)}"
        elif self.details.get("fraction", 1.0) < 1:
            held = f", of a sample of about {self.details['fraction']:.0%} of the people{held}"
        text = f"{self.question}: {shown}{error}{held} ({self.mechanism}, {self.guarantee.title}){warning}"
        return printable(text) + (f"\n{self.citation}" if self.citation else "")

    def sheets(self) -> list[Sheet]:
        shown = self.models or (self.mechanism == EXACT and not self.no_interval)
        intervals, rows = self.interval() if shown else None, []
        for key, value in self.value.items() if isinstance(self.value, dict) else [("", self.value)]:
            bar = intervals[key] if isinstance(intervals, dict) else intervals
            error = self.error.get(key) if isinstance(self.error, dict) else self.error
            span = "–" if bar is None else f"{show(bar[0])} to {show(bar[1])}"
            rows.append([show_key(key), (show_result if self.chosen else show)(value), show(error), span])
        notes = [f"By {self.mechanism}: {self.why}"]
        notes += [f"No interval: {self.no_interval}"] if self.no_interval else []
        notes += [f"No error: {self.no_error}"] if self.no_error and self.models else []
        notes += [f"The error is that expected{self.error_source}."] if self.error_source else []
        notes += [self.details["quality"]] if "quality" in self.details else []
        notes += [f"Condition: {self.assumption}.", *([f"{self.citation}."] if self.citation else [])]
        measure = self.guarantee.measure
        paid = [[self.levels[granted], measure.show([(granted, spent)])] for granted, spent in self.charges.items()]
        more = [f"... and {len(paid) - _MOST_LEVELS} more levels."] if len(paid) > _MOST_LEVELS else []
        answer = Sheet(self.question, ("", "value", "error", "95% interval"), rows, notes)
        price = ("level", measure.head("charged"))
        return [answer, Sheet("", price, paid[:_MOST_LEVELS], [*more, *measure.notes, str(self.guarantee)])]


#: What every answer says that is kept by a ledger in memory.
IN_MEMORY = "The ledger is in memory: what was charged is forgotten with this process."


def tell_question(statistic: str, column: str | None, where: str, by: Sequence[str]) -> str:
    """A question in a line, for the ledger and wherever its answer is shown."""
    parts = [statistic, *([f"of {column}"] if column else []), *([f"where {where}"] if where else [])]
    return " ".join([*parts, *([f"by {', '.join(by)}"] if by else [])])


def cite(*releases: Release) -> str:
    """Where answers are found again, each part said once."""
    parts: dict[str, None] = {}
    for one in releases:
        parts |= dict.fromkeys([one.dataset, f"version {one.version}" if one.version else ""])
        parts |= {} if one.number is None else {f"release {one.number} of {one.at[:10]}": None}
    if any(IN_MEMORY in one.guarantee.caveats for one in releases):
        parts["ledger in memory"] = None
    return printable(", ".join(part for part in parts if part))


def make_release(
    mechanism: Mechanism,
    question: Question,
    people: People,
    entropy: Entropy,
    why: str,
    notes: tuple[str, ...] = (),
    account: Account | None = None,
) -> Release:
    """Draw one answer and put its error, promise and price beside it; `notes` are further caveats.

    `account` is what people are charged where that is not simply what the mechanism takes of their grants.
    """
    levels = people.levels
    account = account or Account.of(levels, charges_of(mechanism, question, levels))
    answer = mechanism.draw(question, people, entropy)
    stated = mechanism.stated_error(question, levels, answer)
    models = mechanism.error_bars(question, levels, answer)
    # Where neither an error nor an interval is stated, nothing rests on a condition.
    told = models or any(stated.values() if isinstance(stated, dict) else (stated,))
    own = mechanism.caveats
    own = (*own, *tell_groups(question.groups))
    caveats, counted = list_caveats(levels, is_private(entropy), own, notes), account.measure
    return build_release(
        account,
        Guarantee(question.neighbors, account.losses, mechanism.kind, caveats, mechanism.imputes, measure=counted),
        statistic=question.statistic.describe(),
        value=answer.value,
        error=stated,
        mechanism=mechanism.name,
        why=why,
        assumption=mechanism.condition(question, levels, answer) if told else ASSUMPTIONS["nothing"],
        models=models,
        no_interval="" if models else mechanism.why_no_interval(question),
        details=answer.details,
    )


def exact_release(
    question: Question, people: People, notes: tuple[str, ...] = (), account: Account | None = None
) -> Release:
    """The exact answer from people who all chose public, labelled so."""
    account = account or Account.of(people.levels, people.levels.grants)
    caveats = (ROSTER_IS_PUBLIC, PUBLIC_PEOPLE, *notes)
    value, rounded = question.statistic.exact(people)
    return build_release(
        account,
        Guarantee(question.neighbors, account.losses, promises.NO_PROMISE, caveats),
        statistic=question.statistic.describe(),
        value=value,
        mechanism=EXACT,
        why=EVERYONE_PUBLIC,
        **_tell_rounding(value, rounded, question.statistic, people.levels),
    )


def _tell_rounding(value: Any, rounded: Sequence[float], statistic: Any, levels: Levels) -> dict[str, Any]:
    """What is said of the error of exact numbers: nothing where nobody counts, else that of rounding alone."""
    if not any(rounded):
        return {"error": 0.0, **({"no_interval": statistic.no_interval} if statistic.labels else {})}
    errors = [None if math.isinf(far) else far / math.sqrt(3) for far in rounded]
    low, high = statistic.limits(levels.size)
    if math.isinf(high - low):  # a model of nobody
        return {"error": None, "no_interval": ExactBar.no_error}
    models = tuple([ExactBar(min(far, high - low), (low, high)) for far in rounded])
    return {"error": dict(zip(value, errors, strict=True)) if isinstance(value, dict) else errors[0], "models": models}


def build_release(account: Account, promise: Guarantee, **parts: Any) -> Release:
    """A release at the price of an account; an error that is not told is not known, nor is anything assumed."""
    told = {"error": None, "assumption": ASSUMPTIONS["nothing"], **parts}
    return Release(guarantee=promise, charges=account.charges, levels=account.called, **told)


def tell_groups(groups: Sequence[int]) -> tuple[str, ...]:
    """What a release says of group privacy, if it has any."""
    listed = ", ".join(f"{to_epsilon(g):.6g} for {i}" for i, g in enumerate(groups, 1))
    return (f"In this release alone, bounds for groups by their size: {listed}.",) if groups else ()


def list_caveats(levels: Levels, private: bool, own: tuple[str, ...], notes: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What must be said with a promise: that it was seeded, what is particular to it, what holds for every roster."""
    caveats = [*(() if private else (SEEDED,)), *own, ROSTER_IS_PUBLIC]
    if None in levels.grants:
        caveats.append(PUBLIC_PEOPLE)
    if levels.rounding_loss > 0:
        lost = f"by {levels.rounding_loss:.1%} on average"
        caveats.append(f"More than 256 distinct preferences were rounded down to a fixed ladder, {lost}.")
    return (*caveats, *notes)


def _listed(value: Any) -> list[Any]:
    """An array or list of numbers; an algorithm's own objects do not survive JSON."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(listed, list | tuple) and all(isinstance(v, str | Real | list | None) for v in listed):
        return list(listed)
    rule, hint = "Only numbers, text, lists and dicts of them survive JSON.", "an algorithm that returns numbers"
    raise PlanError("This answer is an object of the algorithm's own.", rule=rule, suggest=hint)


def plain_bar(bar: ErrorBar) -> list[Any]:
    """An error bar as JSON has it: its kind and what it holds."""
    held = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(bar).items()}
    return [type(bar).__name__, held]


def read_bar(plain: Sequence[Any]) -> ErrorBar:
    """The inverse; a bar of an earlier version may hold less."""
    kind, held = plain
    return _BARS[kind](**{name: tuple(value) if isinstance(value, list) else value for name, value in held.items()})


def _plain_table(value: Any) -> Any:
    """Numbers by key as JSON has them; anything else as it is."""
    return [[plain_key(key), number] for key, number in value.items()] if isinstance(value, dict) else value


def _read_table(value: Any) -> Any:
    """The inverse."""
    return {read_key(key): number for key, number in value} if isinstance(value, list) else value


def plain_key(key: Hashable) -> Any:
    """A key as strict JSON: tuples, endless bins, exact numbers and dates are tagged, to come back as they were."""
    if isinstance(key, tuple):
        return {"tuple": [plain_key(part) for part in key]}
    if isinstance(key, float) and not math.isfinite(key):
        return {"float": str(key)}
    tag = next((tag for tag, (kind, _) in _TAGGED.items() if isinstance(key, kind)), None)
    return key if tag is None else {tag: key.isoformat() if isinstance(key, datetime.date) else str(key)}


def read_key(key: Any) -> Hashable:
    """The inverse."""
    if not isinstance(key, dict):
        return cast(Hashable, key)
    (tag, content), *_ = key.items()
    if tag == "tuple":
        return tuple(read_key(part) for part in content)
    return float(content) if tag == "float" else _TAGGED[tag][1](content)
