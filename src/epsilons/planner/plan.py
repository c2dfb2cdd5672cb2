"""A plan: what an answer would cost and how far it would err, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

from epsilons.accuracy.count import count_floor
from epsilons.accuracy.relation import holds
from epsilons.arguments.checks import LEAST_SHARE, check_error, check_real, check_share
from epsilons.arguments.reading import Settings
from epsilons.display import Sheet, Shown, show, show_count
from epsilons.errors import Argument, PlanError, Text
from epsilons.guarantee import to_epsilon
from epsilons.measure import Rate
from epsilons.planner.choose import DEFAULTS, HEAD, Front, PlanRow, choose, rank_mechanisms
from epsilons.planner.guesses import GUESSES, Guess, Known, list_guesses
from epsilons.preferences import Levels
from epsilons.statistics.base import Question

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOVE = Argument("move", {"strict": ("standard", 0.2)})


@dataclass(frozen=True)
class Plan(Shown):
    """Every mechanism that can serve a question, the best first. Made from public facts; it costs nothing.

    `share` is the part of every person's grant that the question may use.
    """

    question: Question
    levels: Levels
    share: Fraction = Fraction(1)
    settings: Settings = DEFAULTS
    rows: tuple[PlanRow, ...] = ()
    #: No personalized mechanism at all can promise a smaller worst-case error than this (counts only).
    floor: float | None = None
    #: For tables: which share of their grants people may be charged; `levels` are then what is left of it.
    of_grants: Fraction | None = None
    #: For tables: an error is to be reached under a condition, and nobody said how many meet it.
    counts_first: bool = False
    #: What of the question's guesses comes from past answers or from the roster.
    known: tuple[Known, ...] = ()
    #: What the caller asked for by name; `ask` takes its row.
    mechanism: str = "auto"
    #: How the front that made the plan asks a row of it; None for plans about people as they might be.
    front: Front | None = field(default=None, repr=False, compare=False)
    #: Of concentrated accounts: what levels pay with.
    rate: Rate | None = None

    @classmethod
    def make(
        cls,
        question: Question,
        levels: Levels,
        share: Fraction = Fraction(1),
        settings: Settings = DEFAULTS,
        mechanism: str = "auto",
        front: Front | None = None,
        rate: Rate | None = None,
    ) -> Plan:
        """Predict every mechanism's error at a share of every grant; a mechanism asked for must be able to serve."""
        question.statistic.check_people(levels)
        rate = rate or question.rate
        spendable = levels if share == 1 and rate is None else levels.take_share(share, rate)
        if spendable.all_public:
            raise nobody_left(share)
        asked = scale_question(question, share) if share < 1 else question
        if mechanism != "auto":
            choose(mechanism, asked, spendable, settings)
        rows = tuple(
            replace(row, account=row.account.at_share(levels, share, rate), share=share, front=front)
            for row in rank_mechanisms(asked, spendable, settings)
        )
        everyone = question.statistic.name == "count" and not question.statistic.private_count and rate is None
        floor = count_floor(spendable, 2 if getattr(question.statistic, "centred", False) else 1) if everyone else None
        return cls(question, levels, share, settings, rows, floor, mechanism=mechanism, front=front, rate=rate)

    @property
    def if_complete(self) -> float | None:
        """The error with the word that nothing is missing (`complete`); None where it would hardly be lower.

        Nor where that word cannot be true: whoever guesses that fewer than everyone have a value knows of gaps.
        """
        statistic, density = self.question.statistic.completed(), self.question.density
        if statistic is None or (density is not None and round(density, 5) < 1):  # 1 is read as nearly 1
            return None
        question = replace(self.question, statistic=statistic)
        made = Plan.make(question, self.levels, self.share, self.settings, rate=self.rate)
        errors = [row.expected for row in made.rows if self.mechanism in ("auto", row.mechanism)]
        return next((error for error in errors if error < 0.99 * self[self.mechanism].expected), None)

    @property
    def best(self) -> PlanRow:
        """The row that `mechanism="auto"` takes."""
        return self.rows[0]

    def chosen(self, mechanism: str) -> PlanRow:
        """The row of a mechanism, the best one for "auto": `plan["sample"].error`, `plan["sample"].ask(values)`."""
        for row in self.rows:
            if mechanism in ("auto", row.mechanism):
                return row
        names = ", ".join(["auto", *(row.mechanism for row in self.rows)])
        raise PlanError(f"{mechanism!r} cannot serve this question.", suggest=names)

    __getitem__ = chosen

    def ask(self, *data: Any, **named: Any) -> Any:
        """Ask what was planned: `plan.ask(values)` on arrays, `plan.ask()` on tables.

        The answer comes from the mechanism that the plan was asked for, or from the best one, as its row shows.
        """
        return self[self.mechanism].ask_as(self.mechanism, data, named)

    def __getstate__(self) -> dict[str, Any]:
        """Elsewhere it can be looked at, not asked: the front that made it stays here."""
        return {**self.__dict__, "front": None}

    def at(self, share: Fraction) -> Plan:
        """This question at another share."""
        front = self.front if self.of_grants is None else None
        settings = self.settings, self.mechanism, front, self.rate
        made = Plan.make(self.question, self.levels, check_share(share), *settings)
        return replace(made, known=self.known)

    def reaching(self, error: float) -> Plan:
        """The plan with the smallest share whose best predicted error is at most `error`."""

        def predict(share: Fraction) -> float:
            return self.at(share).best.expected

        least = max(LEAST_SHARE, Fraction(1, self.levels.largest))
        return self.at(find_share(check_error(error), self.question, predict, least, 2))

    def what_if(self, move: Mapping[str | float, tuple[str | float, float]]) -> Plan:
        """What consent is worth: the plan if a fraction of one level's people moved to another level.

        `move={"strict": ("standard", .2)}` moves a fifth of the strict; levels by name or by epsilon, each once.
        """
        before = dict(zip(self.levels.grants, self.levels.sizes, strict=True))
        sizes, moved = dict(before), set()
        for source, target, fraction in _moves(move):
            origin, people = self._grant(source), round(before[self._grant(source)] * fraction)
            if origin in moved:
                rule = "By name and by epsilon it is the same people, who move once."
                raise PlanError(f"The level {self.levels.name(origin)} is moved twice.", rule=rule, suggest=_MOVE)
            moved.add(origin)
            sizes[origin] -= people
            sizes[self._grant(target)] += people
        kept = [(grant, size) for grant, size in sizes.items() if size > 0]
        if all(grant is None for grant, _ in kept):
            rule = "With everyone public answers are exact."
            raise PlanError("There would be nothing to plan.", rule=rule, suggest="leave people at a finite level")
        levels = replace(self.levels, grants=tuple(g for g, _ in kept), sizes=tuple(n for _, n in kept))
        return replace(Plan.make(self.question, levels, self.share, self.settings, rate=self.rate), known=self.known)

    def _grant(self, level: str | float) -> int | None:
        for grant in self.levels.grants:
            if level in (self.levels.name(grant), to_epsilon(grant)):
                return grant
        if isinstance(level, Real):
            near = [grant for grant in self.levels.grants if f"{to_epsilon(grant):.6g}" == f"{float(level):.6g}"]
            if len(near) == 1:
                return near[0]
        names = ", ".join(self.levels.name(grant) for grant in self.levels.grants)
        raise PlanError(f"There is no level {level!r}.", suggest=f"one of {names}")

    def plot(self, axes: Axes | None = None) -> Axes:
        """Error against the share of everybody's budget, one curve per mechanism."""
        if math.isinf(self.best.expected):
            raise _unpredicted(self.question, "print(plan)")
        from epsilons.plots import plot_plan

        shares = [Fraction(k, 20) for k in range(1, 21)]
        curves: dict[str, list[float]] = {}
        for share in shares:
            for row in self.at(share).rows:
                curves.setdefault(row.mechanism, []).append(row.expected)
        title = f"{self.question.statistic.describe()}\n{holds(self.assumption)}"
        return plot_plan(title, [float(s) for s in shares], curves, self.best.mechanism, axes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {
            "statistic": self.question.statistic.describe(),
            "share": self._shown_share,
            "people": self.levels.size,
            "assumption": self.assumption,
            "floor": self.floor,
            "guesses": [vars(guess) for guess in self.guesses],
            "if_complete": self.if_complete,
            "rows": [row.to_dict() for row in self.rows],
            **({"counts_first": True} if self.counts_first else {}),
        }

    def sheets(self) -> list[Sheet]:
        plan = Sheet(self._title, HEAD, [row.cells() for row in self.rows], self._notes())
        return [plan, *([Sheet("", GUESSES, [one.cells() for one in self.guesses])] if self.guesses else [])]

    @cached_property
    def guesses(self) -> tuple[Guess, ...]:
        """What the error of the row that is asked takes for granted of the values, and how it moves if that is off."""
        asked = scale_question(self.question, self.share) if self.share < 1 else self.question
        whole = self.share == 1 and self.rate is None
        levels = self.levels if whole else self.levels.take_share(self.share, self.rate)
        return list_guesses(self[self.mechanism].chosen, asked, levels, self.known)

    @property
    def assumption(self) -> str:
        """What the ranking takes for granted, as a clause."""
        return self.question.condition()

    @property
    def _shown_share(self) -> float:
        return float(self.share if self.of_grants is None else self.of_grants)

    @property
    def _title(self) -> str:
        people = f"{show_count(self.levels.size, 'person', 'people')} at {show_count(len(self.levels.grants), 'level')}"
        return f"Plan for a {self.question.statistic.describe()}, {people}, share {self._shown_share:.4g}"

    def _notes(self) -> list[str]:
        guessed = ", and the public guesses hold" if self.guesses else ""
        notes = [
            f"Best first, by error: {self.question.statistic.error_is} if {self.assumption}{guessed};",
            "worst error: whatever values have to do with preferences.",
        ]
        if math.isinf(self.best.expected):
            notes = [f"No error is known beforehand, so that the default comes first; {self.assumption}."]
        elif math.isinf(self.question.assume):
            notes = [f"Best first, by worst error{guessed.replace(', and', ' if')}; {self.assumption}."]
        if self.floor is not None:
            notes.append(f"No personalized mechanism can promise a worst error below {show(self.floor)}.")
        if self.if_complete is not None:
            now = self[self.mechanism].expected
            word = "The word that nothing is missing (complete) would lower the error"
            notes.append(f"{word} from {show(now)} to {show(self.if_complete)}.")
        for name, found in self[self.mechanism].expectations.items():
            if (exact := self[self.mechanism].expectations.get(f"{name}_exact")) is not None:
                told = f"Expected {'R2' if name == 'r2' else name}: {found:.3g}, where an exact model has {exact:.3g}"
                notes.append(f"{told}, by the guesses that slopes have the usual size and of the spread.")
        if self.counts_first:
            first = "asked by its error, it buys a rough count first, with about a tenth of its price"
            notes.append(f"How many meet the condition is a guess here; {first}, unless a density is given.")
        if self.rate is not None:
            notes += self.rate.measure.notes
        if any(row.error is None for row in self.rows):
            notes.append("A dash: it cannot be predicted without looking at the data.")
        return notes


def find_share(
    error: float, question: Question, predict: Callable[[Fraction], float], least: Fraction, shrink: int
) -> Fraction:
    """The smallest share whose predicted error is at most `error`, by bisection between `least` and all of it.

    As long as every share reached the error, the next one is `shrink` times smaller. If the least one does, it is
    taken, and the answer is more accurate than asked.
    """
    whole = predict(Fraction(1))
    if math.isinf(whole):
        raise _unpredicted(question, Argument("share", 0.1))
    if whole > error:
        rule, hint = f"All that people may be charged gives {whole:.4g}.", float(f"{whole * 1.01:.3g}")
        raise PlanError(f"An error of {error:g} is out of reach.", rule=rule, suggest=Argument("error", hint))
    low, best = Fraction(0), Fraction(1)
    for _ in range(40):
        middle = max((best / shrink if low == 0 else (low + best) / 2).limit_denominator(10**15), least)
        if middle == best or (low and best - low < best / 100_000):
            break
        low, best = (low, middle) if predict(middle) <= error else (middle, best)
    return best


def _unpredicted(question: Question, suggest: Text) -> PlanError:
    return PlanError(f"No error can be predicted for a {question.statistic.name}.", suggest=suggest)


def _moves(move: Any) -> list[tuple[Any, Any, float]]:
    try:
        moves = [(source, target, check_real(fraction)) for source, (target, fraction) in move.items()]
        if all(0 <= fraction <= 1 for _, _, fraction in moves):
            return moves
    except (AttributeError, TypeError, ValueError):
        pass
    raise PlanError("Nobody can be moved this way.", rule="level: (other level, fraction from 0 to 1).", suggest=_MOVE)


def scale_question(question: Question, share: Fraction) -> Question:
    """The question at a share: the epsilons of groups of people shrink like everybody's."""
    groups = tuple(math.floor(group * share) for group in question.groups)
    if 0 in groups:
        raise nobody_left(share)
    return replace(question, groups=groups) if groups else question


def nobody_left(share: Fraction) -> PlanError:
    """A share so small that nothing of any grant is left of it."""
    return PlanError(f"A share of {float(share):g} leaves nobody with anything to spend.", suggest="a larger share")
