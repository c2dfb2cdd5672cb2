"""What is asked of a dataset beyond the single statistics, wherever its rows are: here, or behind a server."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from epsilons.accuracy.relation import WHOLE, Relation
from epsilons.arguments.checks import BOUNDS_RULE
from epsilons.calls import query_signature
from epsilons.dataset.answers import Answers
from epsilons.dataset.batch import Batch
from epsilons.dataset.facts import Description, TableFacts
from epsilons.dataset.methods import Questions
from epsilons.dataset.question import registered_keys
from epsilons.engines.base import NUMBER, TRUTH
from epsilons.errors import Argument, PlanError
from epsilons.measure import Measure
from epsilons.planner.budget import BudgetPlan, find_delta, plan_budget

#: What is read as a truth in a file is one in a key, too.
_TRUTHS = {word[:end]: word in ("true", "yes") for word in ("true", "yes", "false", "no") for end in (1, None)}
_TRUTHS |= {"1": True, "0": False}


class Asking(Questions):
    """Questions in SQL, relations, keys; by what a dataset itself has."""

    _facts: TableFacts
    batch: Callable[..., Batch]
    describe: Callable[[], Description]
    count_charged: Callable[[], int]

    def keys(self, column: str) -> Sequence[Any]:
        """The keys of a column that were registered: what groups of it have unless others are given."""
        return registered_keys(column, self._facts)

    def key(self, column: str, word: str) -> Any:
        """A key written as text, in the type of its column: groups of a column of numbers are numbers."""
        kind = self._facts.schema.find(column)
        if kind.family == NUMBER:
            for read in (float,) if kind.floating or kind.scale else (int, float):
                with suppress(ValueError):
                    return read(word)
            raise PlanError(f"{word!r} is not a number.", rule=f"Column {kind.name!r} holds numbers.")
        if kind.family != TRUTH:
            return word
        if (said := word.strip().casefold()) not in _TRUTHS:
            rule = f"Column {kind.name!r} holds truths."
            raise PlanError(f"{word!r} is no truth.", rule=rule, suggest="true or false")
        return _TRUTHS[said]

    def sql(
        self,
        query: str,
        *,
        share: float | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        keys: Mapping[str, Sequence[Hashable]] | None = None,
        **options: Any,
    ) -> Answers:
        """The part of SQL that maps to the statistics; several aggregates split one share.

        `bounds` are those of the columns, `keys` the groups of the columns of GROUP BY. Other options are those of
        every statistic (`assume`, `missing`, ...). A batch shows the plan first: `ask.sql(...)`, then `ask.plan()`.
        """
        batch = self.batch(share)
        batch.sql(query, bounds=bounds, keys=keys, **options)
        return batch.ask()

    sql.__signature__ = query_signature(Answers, share=True)  # type: ignore[attr-defined]

    def relation(self, column: str, *, share: float = 0.02, **options: Any) -> Relation:
        """How far levels' expected means can lie from everyone's: what later questions may take as `assume`, for free.

        Each level's own noisy mean is bought with a share of everybody's grant, as by `mean(..., mechanism="mixed")`;
        other options are those of a mean. Missing values stand at the centre of the bounds, unless the column is
        declared complete. Means and sums of the column within the same bounds take it, without a condition.
        """
        return Relation.bought_by(self.mean(**self._as_mean(column, share=share, **options)))

    def _as_mean(self, column: str, **options: Any) -> dict[str, Any]:
        """The mean by which a relation is bought: its price, and whether it was asked before."""
        if self._facts.rows > 1:
            rule, hint = f"Here people have up to {self._facts.rows} rows.", "a dataset with one row per person"
            raise PlanError(WHOLE, rule=rule, suggest=hint)
        return {"column": column, **Relation.question(options, column in self._facts.complete)}

    def budget(
        self, questions: int | None = None, *, column: str | None = None, delta: float | None = None
    ) -> BudgetPlan:
        """How far a count or a mean will be off if so many questions are asked, under each kind of account. Free.

        As many as were planned for when the dataset was registered, or 10, unless they are given.
        From what people granted alone, whatever was spent. A mean is one of `column`, which has registered bounds, or
        without one a part of the width of any bounds. `delta` is that of a concentrated account (zcdp); the ledger's
        own, or a millionth.
        """
        told = self.describe()
        own, levels = Measure.of_text(told.measure).delta, told.levels
        about: dict[str, Any] = {}
        if column is not None:
            about = {"column": (name := self._facts.schema.number(column).name)}
            if name not in self._facts.bounds:
                hint = ("leave ", Argument("column"), " out, or register its bounds")
                raise PlanError(f"Column {name!r} has no registered bounds.", rule=BOUNDS_RULE, suggest=hint)
            low, high = self._facts.bounds[name]
            about |= {"width": high - low}
        known = [one.epsilon for one in levels], [one.people for one in levels]
        planned = told.questions
        often = planned if questions is None else questions
        return plan_budget(*known, often, delta=find_delta(delta, own), planned=planned, **about)

    def __str__(self) -> str:
        return str(self.describe())

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()
