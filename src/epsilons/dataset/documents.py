"""Questions as JSON documents: how a client writes them, and how a server reads, plans and asks them.

    {"statistic": "mean", "arguments": {"column": "wage", "bounds": [0, 100], "share": 0.1}}
    {"sql": "SELECT AVG(wage) FROM people", "arguments": {"bounds": {"wage": [0, 100]}, "share": 0.1}}
    {"questions": [one such, another, ...], "share": 0.2}

Arguments are those of the methods, read by the same rules. What JSON has no form for is an object with one entry:
`{"date": "2026-11-16"}`, `{"relation": 17}` for what release 17 found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from epsilons.accuracy.relation import Relation
from epsilons.arguments.options import TABLES
from epsilons.arguments.reading import Call, read_call
from epsilons.dataset.facts import Description, Level, TableFacts
from epsilons.dataset.question import question_key
from epsilons.display import Sheet
from epsilons.engines.base import Column, Schema
from epsilons.errors import Argument, LedgerError, PlanError
from epsilons.measure import Measure
from epsilons.planner.plan import Plan
from epsilons.release.answer import Release, plain_key, read_key
from epsilons.release.stored import StoredAnswers
from epsilons.statistics.catalogue import find_statistic

if TYPE_CHECKING:
    from epsilons.dataset.batch import Batch
    from epsilons.dataset.table import Dataset

#: What a server knows by itself, or keeps to itself.
_APART = {"analyst": "Who asks is known by their key.", "entropy": "A server draws from its own system's randomness."}
#: So many questions a document has at most: whoever plans or asks them holds the dataset meanwhile.
_MOST = 256
_EXAMPLE = '{"statistic": "count", "arguments": {"share": 0.1}}'


def write_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a method as JSON has them."""
    return {name: _write(name, value) for name, value in given.items()}


def _write(name: str, value: Any) -> Any:
    if isinstance(value, Relation):
        if value.number is None:
            rule = "A server goes by the release that a relation was bought by."
            raise PlanError("This relation was not bought here.", rule=rule, suggest=Argument("assume", 0.3))
        return {"relation": value.number}
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _write(name, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_write(name, one) for one in value]
    plain = plain_key(value)
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError):
        rule = "Numbers, text, dates, lists and dicts are sent to a server."
        raise PlanError(f"{name!r} cannot be sent.", rule=rule, suggest=Argument(name)) from None
    return plain


def read_arguments(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse."""
    return {name: _read(value) for name, value in plain.items()}


def _read(value: Any) -> Any:
    """The inverse; a tag has text, which no argument by column has."""
    if isinstance(value, list):
        return [_read(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and all(isinstance(one, str) for one in value.values()):
        try:
            return read_key(value)
        except (KeyError, ValueError, ArithmeticError):
            raise _unusable("A value is written in an unknown way.") from None
    return {name: _read(one) for name, one in value.items()}


def is_alone(document: Any) -> bool:
    """Whether a document can be read, and its stored answer found, without a plan or a look at another release."""
    if not isinstance(document, dict) or "statistic" not in document or document.get("planned") is not None:
        return False
    arguments = document.get("arguments")
    return not isinstance(arguments, dict) or not isinstance(arguments.get("assume"), dict)


def _unusable(what: str) -> PlanError:
    return PlanError(what, rule="A question is a JSON object.", suggest=_EXAMPLE)


class Asked:
    """A document that was read and checked against a dataset: nothing was charged, and no row was read.

    `once` names the request: what is asked fresh by it is known again when it is repeated.
    """

    def __init__(self, people: Dataset, document: Any, analyst: str, once: str) -> None:
        self._people, self._analyst, self._once = people, analyst, once
        self._call: Call | None = None
        self._planned: Mapping[str, Any] | None = None
        if not isinstance(document, dict):
            raise _unusable("This is not a question.")
        self._check_entries(document)
        if "statistic" in document:
            named = self._arguments(document)
            call = read_call(find_statistic(document["statistic"]), TABLES, (), named)
            self._call, self._planned = self._known_again(call, 0), _planned_of(document)
            people._parse(self._call)
        else:
            self._batch = self._note_down(document)

    def _check_entries(self, document: Mapping[str, Any]) -> None:
        kinds = {"statistic": {"arguments", "planned"}, "sql": {"arguments"}, "questions": {"share"}}
        named = [kind for kind in kinds if kind in document]
        if len(named) != 1 or not kinds[named[0]] | {named[0]} >= set(document):
            raise _unusable("A document holds a statistic, SQL or a list of questions.")

    def _arguments(self, document: Mapping[str, Any]) -> dict[str, Any]:
        given = document.get("arguments", {})
        if not isinstance(given, dict):
            raise _unusable("Arguments are given by name.")
        for name in (name for name in _APART if given.get(name) is not None):
            raise PlanError(
                f"A server takes no {name!r}.", rule=_APART[name], suggest=("leave ", Argument(name), " out")
            )
        for name in (name for name in ("self", "query", "statistic") if name in given):
            raise _unusable(f"A question takes no {name!r} among its arguments.")
        try:
            found = {name: self._relation(value) if name == "assume" else _read(value) for name, value in given.items()}
        except RecursionError:
            raise _unusable("A list of lists is too deep.") from None
        return {**found, "analyst": self._analyst}

    def _relation(self, value: Any) -> Any:
        """What a release found about preferences and values: by its number, so that nobody states it otherwise."""
        if not isinstance(value, dict) or set(value) != {"relation"}:
            return _read(value)
        number, people = value["relation"], self._people
        try:
            release = StoredAnswers.of(people.ledger, number, people._registry.dataset)[number]
        except LedgerError:
            release = None
        return Relation.bought_by(release)

    def _known_again(self, call: Call, place: int) -> Call:
        once = hashlib.sha256(json.dumps([self._analyst, self._once, place]).encode()).hexdigest()
        return replace(call, options=replace(call.options, once=once))

    def _note_down(self, document: Mapping[str, Any]) -> Batch:
        """A query in SQL is a batch, too."""
        questions, share = document.get("questions"), document.get("share")
        if "sql" in document:
            named = document.get("arguments", {})
            if isinstance(named, dict):
                share = named.get("share")
                named = {name: value for name, value in named.items() if name != "share"}
            questions = [{"sql": document["sql"], "arguments": named}]
        if not isinstance(questions, list) or len(questions) > _MOST:
            raise _unusable(f"Questions are a list of at most {_MOST}.")
        batch = self._people.batch(share)
        for one in questions:
            if not isinstance(one, dict) or not {"statistic", "sql"} & set(one):
                raise _unusable("A question of a batch has a statistic, or SQL.")
            self._check_entries(one)
            named = self._arguments(one)
            batch.sql(one["sql"], **named) if "sql" in one else batch.add(one["statistic"], **named)
        for place, pending in enumerate(batch):
            pending._call = self._known_again(pending._call, place)
        return batch

    @property
    def questions(self) -> int:
        """How many there are."""
        return 1 if self._call is not None else len(list(self._batch))

    def digest(self) -> bytes:
        """What the ledger knows a single question by."""
        return question_key(self._people._facts, self._people._parse(self._pinned()[0]))

    def find(self) -> dict[str, Any] | None:
        """What was answered before, if all of it was: nothing is charged or read."""
        if self._call is None:
            return None if (stored := self._batch.find()) is None else write_answers(stored, self._batch)
        found = self._people._find(self._pinned()[0])
        return None if found is None else {"release": found.to_dict()}

    def ask(self) -> dict[str, Any]:
        """The answer or the answers."""
        if self._call is None:
            return write_answers(self._batch.ask(), self._batch)
        call, plan = self._pinned()
        if plan is not None and self._planned is not None and mark_of(plan) != self._planned["mark"]:
            what = "What people have left has changed since this plan was made."
            raise PlanError(what, rule="Nothing was charged.", suggest="plan again, and ask then")
        return {"release": self._people._ask(call, plan).to_dict()}

    def _pinned(self) -> tuple[Call, Plan | None]:
        """The question as it is asked: by a row of a plan that was shown, if the document names one."""
        assert self._call is not None
        if self._planned is None:
            return self._call, None
        plan = self._people._plan(self._call, self._planned["past"])
        row = plan[self._planned["mechanism"]]
        options = replace(row.pin_options(self._call.options, self._planned["mechanism"]), share=row.share, error=None)
        return replace(self._call, options=options), plan

    def plan(self, past: bool) -> dict[str, Any]:
        """What it would cost and how far it would err. Free."""
        if self._call is None:
            plan = self._batch.plan()
            told = {"answered": self._batch.is_answered(), "sheets": write_sheets(plan.sheets())}
            return {**plan.to_dict(), **told}
        if self._planned is not None:
            raise _unusable("What was planned is asked, not planned again.")
        made = self._people._plan(self._call, past)
        known = [vars(one) for one in made.known]
        told = {"mark": mark_of(made), "past": past, "mechanism": made.mechanism, "known": known}
        told["answered"] = self._people._is_answered(self._call)
        return {**made.to_dict(), **told, "sheets": write_sheets(made.sheets())}

    def what_if(self, move: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The plan as it is, and as it would be if people moved between levels: `Plan.what_if`. Free."""
        if self._call is None:
            raise _unusable("What a change would do is told of a single statistic.")
        plan = self._people._plan(self._call, True)
        return plan.to_dict(), plan.what_if(move).to_dict()


def _planned_of(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    planned = document.get("planned")
    if planned is None:
        return None
    kinds = {"mark": str, "past": bool, "mechanism": str}
    if not isinstance(planned, dict) or {name: type(one) for name, one in planned.items()} != kinds:
        raise _unusable("A planned row is named by its plan's mark, past and mechanism.")
    return planned


def mark_of(plan: Plan) -> str:
    """What a plan is known again by: the same one, made for what people have left now."""
    told = json.dumps([plan.to_dict(), plan.levels.grants, plan.levels.sizes], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def write_answers(answers: Mapping[str, Release], batch: Batch) -> dict[str, Any]:
    """In the order of the batch, with the columns of the groups."""
    groups = getattr(answers, "key_names", ())
    listed = [[pending.name, pending.release.to_dict()] for pending in batch]
    return {"answers": listed, "keys": list(groups)}


def write_sheets(sheets: Sequence[Sheet]) -> list[list[Any]]:
    """Tables as they are shown."""
    return [[one.title, list(one.head), [list(row) for row in one.rows], list(one.notes)] for one in sheets]


def read_sheets(plain: Any) -> list[Sheet]:
    """The inverse."""
    return [Sheet(title, head, rows, notes) for title, head, rows, notes in plain]


# What is publicly known of a dataset --------------------------------------------------------------------------------


def write_facts(facts: TableFacts, described: Description) -> dict[str, Any]:
    """All that questions are asked by, and how its people stand; not where the server keeps it."""
    columns = [{each.name: getattr(column, each.name) for each in fields(Column)} for column in facts.schema.values()]
    levels = [{**vars(one), "epsilon": plain_key(one.epsilon)} for one in described.levels]
    told = {name: value for name, value in vars(described).items() if name not in ("columns", "levels")}
    return {
        **told,
        "ledger": "",
        "preparation_seconds": 0.0,
        "columns": columns,
        "levels": levels,
        "people": described.people,
        "bounds": {name: list(pair) for name, pair in facts.bounds.items()},
        "keys": write_arguments(facts.keys),
        "complete": sorted(facts.complete),
        "public": sorted(facts.public),
    }


def read_facts(plain: Mapping[str, Any], place: str) -> tuple[TableFacts, Description]:
    """The inverse, of a dataset behind a server at `place`."""
    columns = [Column(**one) for one in plain["columns"]]
    facts = TableFacts(
        Schema(columns),
        plain["person"],
        plain["neighbors"],
        plain["rows_per_person"],
        frozenset(plain["complete"]),
        {name: (low, high) for name, (low, high) in plain["bounds"].items()},
        name=plain["name"],
        version=plain["version"],
        keys=_read(plain["keys"]),
        public=frozenset(plain["public"]),
        measure=Measure.of_text(plain["measure"]),
        renews=plain["renews"],
        questions=plain["questions"],
    )
    levels = tuple(Level(**{**one, "epsilon": read_key(one["epsilon"])}) for one in plain["levels"])
    told = {each.name: plain[each.name] for each in fields(Description) if each.name not in ("columns", "levels")}
    return facts, Description(**{**told, "ledger": place}, columns=facts.describe_columns(), levels=levels)
