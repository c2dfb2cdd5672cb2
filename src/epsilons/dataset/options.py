"""What every statistic of a table takes besides its own arguments."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypedDict

from epsilons.dataset.asking import Wording
from epsilons.errors import PlanError
from epsilons.ledger.values import Cohort
from epsilons.mechanisms.base import Settings
from epsilons.noise.entropy import Entropy
from epsilons.planner.plan import check_share
from epsilons.statistics.base import Statistic, check_real
from epsilons.statistics.question import Question, check_guess

#: A question's part of everybody's grant unless it says otherwise.
DEFAULT_SHARE = 0.1


@dataclass(frozen=True)
class Portion:
    """What one question of several may use: a share of everybody's grant, but at most this part of what is left."""

    share: Fraction
    part: Fraction
    #: For splitting only: planned as if nothing had been spent, so that a batch is split alike whenever it is asked.
    afresh: bool = False


class Options(TypedDict, total=False):
    """`people.mean("wage", bounds=(0, 100), where="age >= 18", share=.1)`: everything after the column and bounds."""

    where: str | None
    by: Mapping[str, Sequence[Hashable]] | None
    missing: str | None
    share: float | Portion | None
    error: float | None
    mechanism: str
    threshold: float | str | None
    rescale: bool | None
    scale: str | None
    gamma: int | None
    inside: str | None
    assume: str
    spread: float | None
    density: float | None
    location: float | None
    privacy: str
    fresh: bool
    analyst: str | None
    entropy: Entropy | None


@dataclass(frozen=True, eq=False)
class Manner:
    """How a question is to be answered: what may be spent, by which mechanism, under which assumptions."""

    share: Fraction | None
    error: float | None
    mechanism: str
    settings: Settings
    assume: str
    spread: float | None
    density: float | None
    location: float | None
    privacy: str
    fresh: bool
    #: Who asks: for quotas, which are for fairness only. The answer is the same whoever asks.
    analyst: str | None
    entropy: Entropy | None
    #: At most so much of what is left: the rest is for the other questions of a batch. It makes no other question.
    part: Fraction = Fraction(1)
    afresh: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Manner:
        """Check a call's options, except those that say which rows."""
        share, error = given.get("share"), given.get("error")
        if share is not None and error is not None:
            raise PlanError(
                "Both a share and an error were given.",
                rule="Either fixes the other.",
                hint="share=0.1, or error=0.5 for the smallest share that reaches it",
            )
        portion = share if isinstance(share, Portion) else None
        share = share if portion is None else portion.share
        mechanism = given.get("mechanism", "auto")
        if not isinstance(mechanism, str):
            raise PlanError(f"Unknown mechanism {mechanism!r}.", hint='mechanism="auto"')
        settings = Settings(*(given.get(name) for name in ("threshold", "rescale", "scale", "gamma", "inside")))
        privacy = given.get("privacy", "personalized")
        if privacy == "group":
            raise PlanError(
                "Groups have no budgets.",
                rule="A ledger holds one grant for each person.",
                hint='eps.median(values, privacy="group", group_epsilons=[...]) on arrays',
            )
        return cls(
            share=None if error is not None else check_share(DEFAULT_SHARE if share is None else share),
            error=None if error is None else _check_error(error),
            mechanism=mechanism,
            settings=settings,
            assume=given.get("assume", "unrelated"),
            spread=check_guess("spread", given.get("spread")),
            density=check_guess("density", given.get("density")),
            location=check_guess("location", given.get("location")),
            privacy=privacy,
            fresh=bool(given.get("fresh", False)),
            analyst=given.get("analyst"),
            entropy=given.get("entropy"),
            part=Fraction(1) if portion is None else portion.part,
            afresh=portion is not None and portion.afresh,
        )

    def looked_at(self, cohorts: Sequence[Cohort]) -> Sequence[Cohort]:
        """The books as a plan is to see them."""
        return [replace(cohort, spent=0, reserved=0) for cohort in cohorts] if self.afresh else cohorts

    def question(self, statistic: Statistic, neighbors: str) -> Question:
        """The question under these assumptions."""
        guesses = (self.spread, self.density, self.location)
        return Question(statistic, neighbors, self.assume, *guesses, self.privacy)

    def identity(self) -> dict[str, Any]:
        """What of it makes another question."""
        return {
            "share": None if self.share is None else str(self.share),
            "error": self.error,
            "mechanism": self.mechanism,
            "settings": {name: _plain(value) for name, value in self.settings.given().items()},
            "assume": self.assume,
            "guesses": [self.spread, self.density, self.location],
            "privacy": self.privacy,
            "seeded": self.entropy is not None,
        }


def _check_error(error: Any) -> float:
    try:
        number = check_real(error)
    except TypeError:
        number = math.nan
    if not 0 < number < math.inf:
        raise PlanError(f"An error of {error!r} is not allowed.", rule="It is a positive number.", hint="error=0.5")
    return number


def _plain(value: Any) -> bool | float | str:
    """A setting in one spelling: 1 and 1.0 are the same threshold."""
    if isinstance(value, (bool, str)):
        return value
    try:
        return check_real(value)
    except TypeError:
        return repr(value)


#: Options that say which rows; the others say how they are answered.
ROWS = ("where", "by", "missing")
_WORDS = ("bounds", "step", "q", "k", "edges", "categories", "outside", "of", *ROWS)


def known(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same options, none of which is strange."""
    strange = sorted(set(options) - set(Options.__annotations__))
    if strange:
        raise PlanError(f"A question takes no {strange[0]!r}.", hint=", ".join(Options.__annotations__))
    return options


def divided(statistic: str, column: str | None, given: Mapping[str, Any]) -> tuple[Wording, Mapping[str, Any]]:
    """A plan's arguments: those that say what is asked, and those that say how."""
    wording = Wording(statistic, column, **{name: given[name] for name in _WORDS if name in given})
    return wording, known({name: value for name, value in given.items() if name not in _WORDS})
