"""Forms as questions, and questions as code: Python, curl, SQL."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from epsilons.arguments.options import TABLES
from epsilons.arguments.spans import spans_written
from epsilons.dataset import Dataset
from epsilons.dataset.documents import read_arguments, write_arguments
from epsilons.dataset.facts import TableFacts
from epsilons.engines.base import NUMBER, OTHER
from epsilons.errors import PlanError
from epsilons.mechanisms.base import list_mechanisms
from epsilons.statistics.catalogue import CATALOGUE, find_statistic

#: The fields of a question, in the order of the form; everything else in an address is none of its.
FIELDS = (
    "statistic", "column", "other", "low", "high", "other_low", "other_high", "q", "k", "cells", "where", "by", "keys",
    "and_by", "share", "mechanism",
)  # fmt: skip
#: The statistics that the form asks; models of several features are asked from code.
STATISTICS = tuple(name for name, entry in CATALOGUE.items() if entry.pair or not entry.model)
#: What a question is about, in the order of a call.
_COLUMNS = ("column", "target", "other")
#: Into so many bins a histogram goes unless edges are given.
_BINS = 10
_AGGREGATES = {
    "count": "COUNT", "sum": "SUM", "mean": "AVG", "variance": "VAR_POP", "median": "MEDIAN", "quantile": "QUANTILE",
    "min": "MIN", "max": "MAX", "covariance": "COVAR_POP", "correlation": "CORR",
    "mode": "MODE",
}  # fmt: skip


def read_question(fields: Mapping[str, str], people: Dataset) -> dict[str, Any]:
    """The document that a form means; what it leaves out is what was declared."""
    given = {name: fields[name].strip() for name in FIELDS if fields.get(name, "").strip()}
    entry, facts = find_statistic(given.get("statistic", "count")), people._facts
    own, column, named = entry.own(TABLES), given.get("column"), dict[str, Any]()
    if entry.pair:
        named |= _read_pair(given, entry.name, facts)
    elif column and not (entry.column == "optional" and entry.name == "count"):
        named["column"] = column
    if "bounds" in own and not entry.pair and (ends := _read_bounds(given, ("low", "high"), column, facts)):
        named["bounds"] = ends
    if "q" in own:
        found = [_number(word, "q") for word in _split_numbers(given.get("q", "0.5"))]
        named["q"] = found[0] if len(found) == 1 else found
    if "k" in own:
        named["k"] = _number(given.get("k", str(own["k"].default)), "k")
    if "edges" in own:
        named |= _read_cells(given.get("cells", ""), column, people)
    if "among" in own and (words := [word.strip() for word in given.get("cells", "").split(",") if word.strip()]):
        named["among"] = [people.key(column or "", word) for word in words]
    named |= {"where": given["where"]} if "where" in given else {}
    named |= _read_groups(given, people)
    named["share"] = _number(given["share"], "share") if "share" in given else float(facts.share)
    named |= {"mechanism": given["mechanism"]} if given.get("mechanism", "auto") != "auto" else {}
    return {"statistic": entry.name, "arguments": write_arguments(named)}


def _split_numbers(text: str) -> list[str]:
    """Numbers side by side, as 0.25, 0.5 or 0,25 0,5: a comma is a decimal sign between digits, where no point is."""
    apart = text.replace(";", " ").replace(", ", " ")
    return (apart.replace(",", " ") if "." in apart else apart).split()


def _read_pair(given: Mapping[str, str], statistic: str, facts: TableFacts) -> dict[str, Any]:
    """Two columns, and bounds by their names where they are not those that were declared."""
    column, other = (given.get(name, "") for name in ("column", "other"))
    if not column or not other:
        raise PlanError(f"A {statistic} is one of two columns.", suggest="a column and a second column")
    bounds = {
        name: ends
        for name, fields in ((column, ("low", "high")), (other, ("other_low", "other_high")))
        if (ends := _read_bounds(given, fields, name, facts))
    }
    return {"target": column, "other": other, **({"bounds": bounds} if bounds else {})}


def _read_bounds(
    given: Mapping[str, str], fields: tuple[str, str], column: str | None, facts: TableFacts
) -> list[Any] | None:
    """What two fields say, an empty one as it was declared; None where both are empty."""
    if not any(name in given for name in fields):
        return None
    known = facts.bounds.get(column or "", (None, None))
    ends = [_number(given[name], "A bound") if name in given else known[place] for place, name in enumerate(fields)]
    if None in ends:
        raise PlanError("Bounds are two numbers.", suggest="both of them, such as 0 and 100")
    return ends


def _number(text: str, name: str) -> float:
    try:
        found = float(text.replace(",", "."))
    except ValueError:
        raise PlanError(f"{name} is not a number.", suggest="0.1") from None
    return int(found) if found.is_integer() and "." not in text else found


def _read_cells(text: str, column: str | None, people: Dataset) -> dict[str, Any]:
    """Edges of a column of numbers, categories of any other."""
    facts = people._facts
    if column is None or column not in facts.schema:
        return {}
    if (spans := spans_written(text)) is not None:
        return {"edges": spans}
    words = [word.strip() for word in text.split(",") if word.strip()]
    if facts.schema.find(column).family == NUMBER:
        if words:
            return {"edges": [_number(word, "An edge") for word in words]}
        if column not in facts.bounds:
            return {}
        low, high = facts.bounds[column]
        return {"edges": [low + (high - low) * step / _BINS for step in range(_BINS + 1)]}
    return {"categories": words or _declared(column, people)}


def _declared(column: str, people: Dataset) -> Any:
    """The keys that were declared of a column: a list, or ranges and the like."""
    keys = people.keys(column)
    return keys if isinstance(keys, Mapping) else list(keys)


def _read_groups(given: Mapping[str, str], people: Dataset) -> dict[str, Any]:
    """By columns with the keys that were declared, or those that are given for the first."""
    columns = [given[name] for name in ("by", "and_by") if name in given]
    if not columns:
        return {}
    if "keys" not in given or "by" not in given:
        return {"by": list(dict.fromkeys(columns))}
    by, spans = given["by"], spans_written(given["keys"])
    listed = {"": [word.strip() for word in given["keys"].split(",") if word.strip()]} if spans is None else spans
    found = {kind: [people.key(by, word) for word in words] for kind, words in listed.items()}
    keys: Any = found.get("", found)
    return {"by": {by: keys, **{name: _declared(name, people) for name in columns if name != by}}}


def list_choices(facts: TableFacts) -> dict[str, Any]:
    """What the form offers."""
    columns = [one.name for one in facts.schema.values() if one.family != OTHER and one.name != facts.person]
    mechanisms = sorted(list_mechanisms())
    offered = {"statistics": STATISTICS, "pairs": [name for name in STATISTICS if CATALOGUE[name].pair]}
    offered |= {"columns": columns, "grouping": sorted(facts.keys), "mechanisms": ["auto", *mechanisms]}
    return {**offered, "share": float(facts.share)}


# The same question elsewhere ------------------------------------------------------------------------------------------


def write_code(document: Mapping[str, Any], people: Dataset, origin: str) -> list[tuple[str, str]]:
    """(what it is, the text): each asks the same as it stands, with a key in EPSILONS_KEY."""
    facts, named = people._facts, read_arguments(document["arguments"])
    call = ", ".join(_write_argument(one, value) for one, value in named.items())
    place = f"{origin}/v1/datasets/{quote(facts.name, safe='')}/ask"
    curl = (
        f'curl {shlex.quote(place)} -H "Authorization: Bearer $EPSILONS_KEY" \\\n'
        f'    -H "Idempotency-Key: $(date +%s%N)" -d {shlex.quote(json.dumps(document))}'
    )
    told = [("Python", _write_python(facts.name, origin, f"{document['statistic']}({call})")), ("curl", curl)]
    query = _write_sql(document["statistic"], named, facts.person)
    if query is None:
        return told
    beside = {name: value for name, value in named.items() if name not in (*_COLUMNS, "where", "by", "q", "bounds")}
    if "bounds" in named:
        beside["bounds"] = {named["column"]: named["bounds"]} if "column" in named else named["bounds"]
    by = named.get("by", ())
    beside |= (
        {"keys": dict(by) if isinstance(by, Mapping) else {name: _declared(name, people) for name in by}} if by else {}
    )
    options = ", ".join(_write_argument(one, value) for one, value in beside.items())
    return [*told, ("SQL", _write_python(facts.name, origin, f"sql(query, {options})", query))]


def _write_python(dataset: str, origin: str, call: str, query: Sequence[str] = ()) -> str:
    lines = ["import epsilons as eps"]
    lines = ["import datetime", *lines] if "datetime." in call else lines
    lines += ["", "query = (", *(f"    {part!r}" for part in query), ")"] if query else [""]
    lines += [f"with eps.connect({origin!r}) as remote:  # key=..., or EPSILONS_KEY"]
    return "\n".join([*lines, f"    print(remote.dataset({dataset!r}).{call})"])


def _write_argument(name: str, value: Any) -> str:
    value = tuple(value) if name == "bounds" and not isinstance(value, Mapping) else value
    return repr(value) if name in _COLUMNS else f"{name}={value!r}"


def _write_sql(statistic: str, named: Mapping[str, Any], person: str) -> list[str] | None:
    """A query, part by part; None where SQL has no aggregate for it. A count is one of people."""
    if statistic not in _AGGREGATES or isinstance(named.get("q"), list):
        return None
    inside = [_quote(named[name]) for name in _COLUMNS if name in named] or [f"DISTINCT {_quote(person)}"]
    inside += [str(named["q"])] if "q" in named else []
    groups = [_quote(column) for column in named.get("by", ())]
    found = f"{_AGGREGATES[statistic]}({', '.join(inside)})"
    parts = [f"SELECT {', '.join([*groups, found])}", " FROM people"]
    parts += [f" WHERE {named['where']}"] if "where" in named else []
    return [*parts, *([f" GROUP BY {', '.join(groups)}"] if groups else [])]


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
