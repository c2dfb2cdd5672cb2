"""An answer with its error, its promise and its price."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

from epsilons.accuracy.count import CountBar
from epsilons.accuracy.intervals import ErrorBar, ErrorModel, RatioBar
from epsilons.arguments.checks import ASSUMPTIONS, check_confidence
from epsilons.display import html_table, show, show_key
from epsilons.errors import PlanError
from epsilons.guarantee import (
    INDIVIDUAL,
    NO_PROMISE,
    PUBLIC_PEOPLE,
    ROSTER_IS_PUBLIC,
    SEEDED,
    Guarantee,
    to_epsilon,
)
from epsilons.mechanisms.base import Charges, Mechanism, worst_error
from epsilons.mechanisms.local_sensitivity import LocalSensitivity
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels
from epsilons.statistics.base import Question
from epsilons.summaries.people import People

if TYPE_CHECKING:
    import pandas
    import pyarrow


FORMAT = 1
_BARS: dict[str, Callable[[dict[str, Any]], ErrorBar]] = {
    "ErrorModel": ErrorModel.from_dict,
    "CountBar": CountBar.from_dict,
    "RatioBar": RatioBar.from_dict,
}


@dataclass(frozen=True)
class Release:
    """One released answer. Everything here is public: it comes from the noisy answer and from public facts."""

    statistic: str
    value: Any
    error: float | None
    mechanism: str
    why: str
    guarantee: Guarantee
    charges: Mapping[float, float]
    levels: Mapping[float, str]
    assumption: str
    models: tuple[ErrorBar, ...] | None = None
    no_interval: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """False when the randomness was seeded: such an answer protects nobody."""
        return SEEDED not in self.guarantee.caveats

    def interval(self, confidence: float = 0.95, target: str = "roster") -> Any:
        """Where the statistic of the people on the roster lies; `target="population"` adds who happened to be asked.

        For a table of numbers a dict of intervals, one for each key. Holds under `release.assumption`.
        """
        confidence = check_confidence(confidence)
        if target not in ("roster", "population"):
            raise PlanError(f"Unknown target {target!r}.", suggest='target="roster" or target="population"')
        if self.models is None:
            raise PlanError("There is no honest interval for this answer.", rule=self.no_interval)
        population = target == "population"
        if not isinstance(self.value, dict):
            return self.models[0].interval(float(self.value), float(confidence), population)
        pairs = zip(self.value.items(), self.models, strict=True)
        return {key: model.interval(value, confidence, population) for (key, value), model in pairs}

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON, and `from_dict` undoes."""
        value: Any = self.value
        if isinstance(value, dict):
            value = [[_plain(key), number] for key, number in value.items()]
        elif not isinstance(value, str | Real | None):
            value = {"list": _listed(value)}
        return {
            "format": FORMAT,
            "statistic": self.statistic,
            "value": value,
            "error": self.error,
            "mechanism": self.mechanism,
            "why": self.why,
            "guarantee": self.guarantee.to_dict(),
            "charges": [[_finite(granted), spent] for granted, spent in self.charges.items()],
            "levels": [[_finite(granted), name] for granted, name in self.levels.items()],
            "assumption": self.assumption,
            "models": None if self.models is None else [[type(bar).__name__, bar.to_dict()] for bar in self.models],
            "no_interval": self.no_interval,
            "details": dict(self.details),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """The inverse of `to_dict`."""
        try:
            return cls._from_dict(data)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise PlanError(
                f"This is not a release in format {FORMAT}.", suggest="a dict made by release.to_dict()"
            ) from None

    @classmethod
    def _from_dict(cls, data: Mapping[str, Any]) -> Release:
        if data["format"] != FORMAT:
            raise ValueError
        value = data["value"]
        if isinstance(value, list):
            value = {_key(key): number for key, number in value}
        elif isinstance(value, dict):
            value = value["list"]
        models = data["models"]
        return cls(
            statistic=data["statistic"],
            value=value,
            error=data["error"],
            mechanism=data["mechanism"],
            why=data["why"],
            guarantee=Guarantee.from_dict(data["guarantee"]),
            charges={_infinite(granted): spent for granted, spent in data["charges"]},
            levels={_infinite(granted): name for granted, name in data["levels"]},
            assumption=data["assumption"],
            models=None if models is None else tuple(_BARS[kind](bar) for kind, bar in models),
            no_interval=data["no_interval"],
            details=dict(data["details"]),
        )

    def to_arrow(self) -> pyarrow.Table:
        """One row per key; a single number is one row without a key."""
        import pyarrow as pa

        if not isinstance(self.value, dict):
            return pa.table({"value": [self.value]})
        keys = list(self.value)
        columns: dict[str, list[Any]]
        if keys and all(isinstance(key, tuple) for key in keys):
            names = ("low", "high") if self.statistic.startswith("histogram") else None
            width = len(keys[0])
            columns = {(names[i] if names else f"key{i + 1}"): [key[i] for key in keys] for i in range(width)}
        else:
            columns = {"key": keys if len({type(key) for key in keys}) <= 1 else [str(key) for key in keys]}
        return pa.table({**columns, "value": list(self.value.values())})

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas frame."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise PlanError("Frames need pandas.", suggest="pip install 'epsilons[datasets]'") from None

    def __str__(self) -> str:
        if isinstance(self.value, dict):
            shown = "{" + ", ".join(f"{show_key(k)}: {show(v)}" for k, v in list(self.value.items())[:6])
            shown += ", ...}" if len(self.value) > 6 else "}"
        else:
            shown = show(self.value)
        error = "" if self.error is None else f" ± {show(self.error)}"
        warning = "" if self.private else " [NOT PRIVATE: seeded]"
        return f"{self.statistic}: {shown}{error} ({self.mechanism}, {self.guarantee.kind}){warning}"

    def _repr_html_(self) -> str:
        notes = [self.why, str(self.guarantee)]
        if isinstance(self.value, dict):
            rows = [[show_key(key), show(number)] for key, number in self.value.items()]
            return html_table(f"{self.statistic} ({self.mechanism})", ("key", "value"), rows, notes)
        rows = [["value", show(self.value)], ["predicted error", show(self.error)], ["mechanism", self.mechanism]]
        rows += [[f"charged at {self.levels[g]}", show(spent)] for g, spent in self.charges.items()][:8]
        return html_table(self.statistic, (), rows, notes)


@dataclass(frozen=True)
class Account:
    """What people are charged at most, by what they granted, and what the grants are called. In nano-epsilon.

    `losses` pairs each grant with its charge; None is public, which has no balance.
    """

    losses: tuple[tuple[int | None, int | None], ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, levels: Levels, charges: Charges) -> Account:
        """Of people who are all used with what they granted."""
        return cls(tuple(zip(levels.grants, charges, strict=True)), tuple([levels.name(g) for g in levels.grants]))

    def tables(self) -> tuple[dict[float, float], dict[float, str]]:
        """({granted epsilon: epsilon spent}, {granted epsilon: its name}); public people spend nothing."""
        epsilons = [to_epsilon(granted) for granted, _ in self.losses]
        spent = [0.0 if granted is None else to_epsilon(loss or 0) for granted, loss in self.losses]
        return dict(zip(epsilons, spent, strict=True)), dict(zip(epsilons, self.names, strict=True))


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
    account = Account.of(levels, mechanism.charge(question, levels)) if account is None else account
    charges, names = account.tables()
    answer = mechanism.draw(question, people, entropy)
    by_worst = question.assume == "nothing"
    error = worst_error(mechanism, question, levels) if by_worst else mechanism.stated_error(question, levels, answer)
    models = mechanism.error_bars(question, levels, answer)
    assumption = "nothing" if by_worst or mechanism.assumption == "nothing" else question.assume
    return Release(
        statistic=question.statistic.describe(),
        value=answer.value,
        error=error,
        mechanism=mechanism.name,
        why=why,
        guarantee=_guarantee(mechanism, question, levels, account, entropy.private, notes),
        charges=charges,
        levels=names,
        assumption=ASSUMPTIONS[assumption],
        models=models,
        no_interval="" if models else mechanism.why_no_interval(question),
        details=answer.details,
    )


def exact_release(
    question: Question, people: People, notes: tuple[str, ...] = (), account: Account | None = None
) -> Release:
    """The exact answer from people who all chose public, labelled so."""
    account = Account.of(people.levels, (None,) * len(people.levels.grants)) if account is None else account
    charges, names = account.tables()
    return Release(
        statistic=question.statistic.describe(),
        value=question.statistic.exact(people),
        error=0.0,
        mechanism="exact",
        why="Everyone on the roster chose public, so the exact answer is released.",
        guarantee=Guarantee(question.neighbors, account.losses, NO_PROMISE, (ROSTER_IS_PUBLIC, PUBLIC_PEOPLE, *notes)),
        charges=charges,
        levels=names,
        assumption=ASSUMPTIONS["nothing"],
        no_interval="The answer is exact.",
    )


def individual_release(
    statistic: str, value: float, levels: Levels, private: bool, caveats: tuple[str, ...]
) -> Release:
    """An answer with individual privacy for a function of the caller's own."""
    account = Account.of(levels, levels.grants)
    charges, names = account.tables()
    seeded = () if private else (SEEDED,)
    public = (PUBLIC_PEOPLE,) if None in levels.grants else ()
    return Release(
        statistic=statistic,
        value=value,
        error=None,
        mechanism=LocalSensitivity.name,
        why="Asked for by name: noise for a local sensitivity that the caller stated.",
        guarantee=Guarantee(
            neighbors="replace",
            losses=account.losses,
            kind=INDIVIDUAL,
            caveats=(*seeded, *LocalSensitivity.caveats, *caveats, ROSTER_IS_PUBLIC, *public, *_rounding(levels)),
            rounded=levels.rounding_loss > 0,
        ),
        charges=charges,
        levels=names,
        assumption=ASSUMPTIONS["nothing"],
        no_interval="Its width would be data.",
    )


def algorithm_release(
    name: str,
    value: Any,
    levels: Levels,
    threshold: int,
    neighbors: str,
    claim: str,
    private: bool,
    account: Account | None = None,
) -> Release:
    """The result of somebody else's private algorithm on a sample; the promise rests on their claim, which it names."""
    if account is None:
        account = Account.of(
            levels, tuple([None if grant is None else min(grant, threshold) for grant in levels.grants])
        )
    charges, names = account.tables()
    seeded = () if private else (SEEDED,)
    public = (PUBLIC_PEOPLE,) if None in levels.grants else ()
    return Release(
        statistic=name,
        value=value,
        error=None,
        mechanism="sample",
        why=f"A random sample, likelier the more was granted; then the algorithm at {to_epsilon(threshold):.4g}.",
        guarantee=Guarantee(
            neighbors=neighbors,
            losses=account.losses,
            caveats=(*seeded, claim, ROSTER_IS_PUBLIC, *public, *_rounding(levels)),
            rounded=levels.rounding_loss > 0,
        ),
        charges=charges,
        levels=names,
        assumption=ASSUMPTIONS["unrelated"],
        no_interval="How far an algorithm of somebody else's errs is not known here.",
        details={"threshold": to_epsilon(threshold)},
    )


def _guarantee(
    mechanism: Mechanism,
    question: Question,
    levels: Levels,
    account: Account,
    private: bool,
    notes: tuple[str, ...],
) -> Guarantee:
    caveats = [] if private else [SEEDED]
    caveats += mechanism.caveats
    if question.groups:
        sizes = ", ".join(f"{to_epsilon(g):.6g} for {i}" for i, g in enumerate(question.groups, 1))
        caveats.append(f"In this release alone, bounds for groups by their size: {sizes}.")
    caveats.append(ROSTER_IS_PUBLIC)
    if None in levels.grants:
        caveats.append(PUBLIC_PEOPLE)
    caveats += [*_rounding(levels), *notes]
    return Guarantee(
        neighbors=question.neighbors,
        losses=account.losses,
        kind=mechanism.kind,
        caveats=tuple(caveats),
        imputes=mechanism.imputes,
        rounded=levels.rounding_loss > 0,
    )


def _rounding(levels: Levels) -> list[str]:
    if levels.rounding_loss <= 0:
        return []
    lost = f"by {levels.rounding_loss:.1%} on average"
    return [f"More than 256 distinct preferences were rounded down to a fixed ladder, {lost}."]


def _listed(value: Any) -> list[Any]:
    """An array or list of numbers; an algorithm's own objects do not survive JSON."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(listed, list | tuple) and all(isinstance(v, str | Real | list | None) for v in listed):
        return list(listed)
    raise PlanError(
        "This answer is an object of the algorithm's own.",
        rule="Only numbers, words, lists and dicts of them survive JSON.",
        suggest="an algorithm that returns numbers",
    )


def _plain(key: Hashable) -> Any:
    """A key as strict JSON: tuples, endless bins, exact numbers and dates are tagged, to come back as they were."""
    if isinstance(key, tuple):
        return {"tuple": [_plain(part) for part in key]}
    if isinstance(key, float) and not math.isfinite(key):
        return {"float": str(key)}
    if isinstance(key, (Decimal, Fraction)):
        return {type(key).__name__.lower(): str(key)}
    if isinstance(key, datetime.datetime):
        return {"datetime": key.isoformat()}
    if isinstance(key, datetime.date):
        return {"date": key.isoformat()}
    return key


def _key(key: Any) -> Hashable:
    if not isinstance(key, dict):
        plain: Hashable = key
        return plain
    (kind, content), *_ = key.items()
    if kind == "tuple":
        return tuple(_key(part) for part in content)
    reader: dict[str, Callable[[str], Hashable]] = {
        "float": float,
        "decimal": Decimal,
        "fraction": Fraction,
        "datetime": datetime.datetime.fromisoformat,
        "date": datetime.date.fromisoformat,
    }
    return reader[kind](content)


def _finite(granted: float) -> float | None:
    return None if math.isinf(granted) else granted


def _infinite(granted: float | None) -> float:
    return math.inf if granted is None else granted
