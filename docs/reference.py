"""The reference: every public name with its signature, every option typed and explained, every command.

Functions and methods that are made from the catalogue explain their options line by line in their docstrings, which
become tables; classes are left to mkdocstrings.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

import epsilons as eps
from epsilons.arguments.options import OPTIONS
from epsilons.statistics.catalogue import CATALOGUE

#: What plans take and their docstrings tell in prose.
_PLANNED = {option.name: option.help for option in OPTIONS} | {
    "statistic": "What would be asked: the name of a function or method.",
    "column": "The column that it would be asked of.",
    "epsilons": "One epsilon per person, one for all, or eps.Preferences.",
    "error": "The plan with the smallest share that reaches this error.",
    "people": "How many people there are, where one epsilon stands for all.",
    "past": "Whether past answers serve as guesses.",
    "arguments": "Those of the statistic: bounds, q, step, edges and so on.",
}

#: {page: (its head, what it says, names for mkdocstrings)}.
CLASSES = {
    "tables": (
        "Dataset",
        "A table about people, with their accounts. The statistics are its methods, further down.",
        ["epsilons.dataset.table.Dataset", "epsilons.dataset.registered.Registered"],
    ),
    "results": (
        "What comes back",
        "Answers, plans, promises, and what they are made from.",
        [
            "epsilons.release.answer.Release",
            "epsilons.planner.plan.Plan",
            "epsilons.guarantee.Guarantee",
            "epsilons.preferences.asked.Preferences",
            "epsilons.preferences.Roster",
        ],
    ),
    "errors": ("Errors", "Every error says what happened, which rule it broke and what to try.", ["epsilons.errors"]),
    "remote": (
        "Gateways from outside",
        "`eps.connect`, and what it gives.",
        ["epsilons.remote.client", "epsilons.remote.plans"],
    ),
    "ledger": ("The ledger", "`eps.ledger`: accounts that last.", ["epsilons.ledger.ledger.Ledger"]),
    "local": ("The local model", "`epsilons.local`: people randomize their own answers.", ["epsilons.local"]),
    "models": ("Estimators", "`epsilons.estimators`: models in the style of scikit-learn.", ["epsilons.estimators"]),
}


def _split(doc: str) -> tuple[str, dict[str, str]]:
    """What a docstring says first, and {argument: what it says of it}."""
    lead, told = [], {}
    for line in doc.splitlines():
        found = re.match(r"(\w+): (.+)", line)
        if found:
            told[found[1]] = found[2]
        elif not told:
            lead.append(line)
    return "\n".join(lead).strip(), told


def _told_by(call: Callable[..., Any]) -> dict[str, str]:
    """{argument: what the docstring says of it}."""
    return _split(inspect.getdoc(call) or "")[1]


#: What the docstrings of these tell in prose, argument by argument; beside what all functions share.
_SHARED = {option.name: option.help for option in OPTIONS} | {
    "values": "One value per person.",
    "epsilons": "One epsilon per person, one for all, or eps.Preferences.",
    "domain": "Public values that a person may have; claims are tested on data made from them.",
    "step": "Distance between possible answers.",
    "size": "How many numbers there are.",
    "whole": "Whether answers are whole numbers.",
    "sensitivity": "How far one person can move the function, by your word.",
    "function": "A function of the values.",
    "arguments": "Those of the statistic.",
    "first": "The first date, as a date or as text.",
    "last": "The last date.",
}
_OWN = {
    "audit": {
        "what": "A statistic by name, a mechanism, or a function of values.",
        "mechanism": "One mechanism; all that serve unless given.",
        "statistic": "What a mechanism of one's own is to serve.",
        "law": "Whether the function returns (outcomes, chances).",
        "draws": "How often a function is called where no distribution is known.",
        "confidence": "How sure a refutation from draws is.",
        "name": "What it is called in the report.",
        "progress": "Called with how many parts are done, and of how many.",
    },
    "distribution": {
        "what": "A statistic by name, or a function.",
        "statistic": "What a mechanism of one's own serves.",
        "draws": "How many, where no law is known.",
    },
    "simulate": {
        "what": "A statistic by name, or a function.",
        "statistic": "What a mechanism of one's own serves.",
        "size": "How many draws.",
    },
    "personalize": {
        "algorithm": "A function of data and epsilon, a measurement of OpenDP, a model of diffprivlib.",
        "data": "One entry per person, or a tuple of such side by side.",
        "threshold": "The epsilon that it runs at: max (default), mean, a number, or best (by `like`).",
        "like": "For the best threshold: old data of the same kind without protection, or a function of the pilot.",
        "truth": "For the best threshold: what a function of those data gives without noise.",
        "pilot": "For the best threshold without old data: the part of every epsilon that buys a first answer.",
        "private_under": "Under which neighbours the algorithm is private: absent or both.",
        "person": "With several rows each: an id per row.",
        "rows_per_person": "So many rows of one person are used at most.",
        "rescale": "Whether an answer of totals is divided by the average chance to be in the sample.",
    },
    "ranges": {"edges": "Numbers or dates, from the smallest to the largest."},
    "relation": {"options": "Those of a mean: bounds, share, spread and the others."},
    "select": {
        "options": "What is chosen from.",
        "cost": "cost(values, epsilons, option): what it takes at least, in epsilons, to make an option true.",
        "score": "score(value, option): how much a person's value speaks for an option.",
        "bounds": "Of scores, which are cut to them.",
        "k": "How many of the best.",
    },
    "sql": {"query": "SELECT keys and aggregates FROM people, with WHERE and GROUP BY."},
}

#: What a dataset is made from and with, whichever way it is made.
_DATASET = _told_by(eps.Dataset.register) | {"path": "A file such as people.toml."}
_IN_MEMORY = {"ledger": '"memory": gone with this process. What is to last is registered.'}
_ALGORITHM = _OWN["personalize"] | {
    "columns": "The columns that it gets.",
    "target": "The column that it is to predict.",
    "name": "What it is called, so that the same question is known again.",
}
_PREFERENCES = {
    "names": "The name of a level per person, or the column that holds them.",
    "levels": "{level: epsilon}; eps.PUBLIC for people who ask for no protection.",
    "default": "For people who said nothing; without it they are an error.",
    "column": "The column of epsilons, or of names of levels.",
    "path": "A file, or a frame of pandas, polars or Arrow.",
    "person": "Its column of ids, written as in the data.",
    "epsilons": "One per person, or {id: epsilon}.",
} | {name: _DATASET[name] for name in ("types", "dialect")}

#: {page: {what is called there: (how, what its arguments mean)}}, beside functions and statistics.
CALLS: dict[str, dict[str, tuple[Callable[..., Any], dict[str, str]]]] = {
    "tables": {
        "Dataset": (eps.Dataset, _DATASET | _IN_MEMORY),
        "Dataset.register": (eps.Dataset.register, _DATASET),
        "Dataset.open": (eps.Dataset.open, _DATASET),
        "Dataset.from_toml": (eps.Dataset.from_toml, _DATASET),
        "people.sql": (eps.Dataset.sql, _SHARED | _DATASET | _OWN["sql"]),
        "people.apply": (eps.Dataset.apply, _SHARED | _ALGORITHM),
        "people.batch": (eps.Dataset.batch, _SHARED),
    },
    "results": {
        "Preferences": (eps.Preferences, _PREFERENCES),
        "Preferences.from_levels": (eps.Preferences.from_levels, _PREFERENCES),
        "Preferences.from_column": (eps.Preferences.from_column, _PREFERENCES),
        "Preferences.from_file": (eps.Preferences.from_file, _PREFERENCES),
    },
    "remote": {"connect": (eps.connect, _told_by(eps.connect))},
}


def write_all(folder: Path) -> dict[str, str]:
    """{title: page} of the reference."""
    folder.mkdir(parents=True)
    pages = {"Functions on arrays": "functions", "Commands": "commands"}
    (folder / "functions.md").write_text(_functions(), encoding="utf-8")
    (folder / "commands.md").write_text(_commands(), encoding="utf-8")
    for page, (title, lead, names) in CLASSES.items():
        parts = [f"# {title}", lead, *(f"::: {name}" for name in names)]
        if page in CALLS:
            parts.append("## Arguments, one by one")
        for name, (call, told) in CALLS.get(page, {}).items():
            parts += [f"### {name}(...) {{#{name.lower()}-arguments}}", _tabulate(call, told)]
        if page == "tables":
            parts += [
                "## Statistics as methods",
                *(_explain(name, getattr(eps.Dataset, name), "###") for name in CATALOGUE),
            ]
        (folder / f"{page}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        pages[title] = page
    return {title: f"reference/{page}.md" for title, page in sorted(pages.items())}


def _functions() -> str:
    parts = ["# Functions on arrays", "`import epsilons as eps`. Classes have pages of their own."]
    parts += [_explain(name, getattr(eps, name)) for name in _list_functions()]
    return "\n\n".join(parts) + "\n"


def _list_functions() -> list[str]:
    """By name; `connect` has a page with what it gives."""
    return sorted(name for name in eps.__all__ if inspect.isfunction(getattr(eps, name)) and name != "connect")


def _explain(name: str, call: Callable[..., Any], level: str = "##") -> str:
    """A heading, a line, and a table of arguments with their types, defaults and meanings."""
    lead, told = _told(name, call)
    return f"{level} {name} {{#{name}}}\n\n{_fence(lead)}\n\n{_tabulate(call, told)}".rstrip()


def _tabulate(call: Callable[..., Any], told: Mapping[str, str]) -> str:
    """A table of arguments; nothing where there is none."""
    given = {one: parameter for one, parameter in inspect.signature(call).parameters.items() if one != "self"}
    rows = [f"| `{one}` | {_escape(told.get(one, ''))} | {_kind(p)} | {_default(p)} |" for one, p in given.items()]
    return "\n".join(["| argument | meaning | type | unless given |", "|---|---|---|---|", *rows]) if rows else ""


def unexplained() -> list[str]:
    """Arguments that the reference could not explain."""
    calls = {f"eps.{name}": getattr(eps, name) for name in _list_functions()}
    calls |= {f"Dataset.{name}": getattr(eps.Dataset, name) for name in (*CATALOGUE, "plan")}
    explained = {name: (call, _told(name.partition(".")[2], call)[1]) for name, call in calls.items()}
    for listed in CALLS.values():
        explained |= listed
    found = []
    for name, (call, told) in explained.items():
        for one, parameter in inspect.signature(call).parameters.items():
            if one != "self" and (not told.get(one) or parameter.annotation is inspect.Parameter.empty):
                found.append(f"{name}({one})")
    return found


def _told(name: str, call: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    lead, told = _split(inspect.getdoc(call) or "")
    return lead, (_PLANNED if name == "plan" else _SHARED | _OWN.get(name, {})) | told


def _kind(parameter: inspect.Parameter) -> str:
    if parameter.annotation is inspect.Parameter.empty:
        return ""
    text = parameter.annotation
    text = text if isinstance(text, str) else inspect.formatannotation(text)
    for pattern, plain in (
        (r"\b(?:typing|collections\.abc|epsilons(?:\.\w+)*)\.", ""),
        (r"Optional\[(Literal\[[^\]]*\])\]", r"\1, None"),
        (r"Union\[(.*)\]$", r"\1"),
        (r"Literal\[([^\]]*)\]", r"\1"),
        (r" \| ", ", "),
        (r"NoneType", "None"),
    ):
        text = re.sub(pattern, plain, text)
    return f"`{text}`"


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return "required"
    return f"`{parameter.default!r}`"


def _fence(text: str) -> str:
    """Prose as it is, sessions as blocks of code."""
    parts = [part for part in re.split(r"(?:^|\n\n)(?=>>> )|\n\n", text) if part.strip()]
    return "\n\n".join(f"```pycon\n{part}\n```" if part.startswith(">>> ") else _escape(part) for part in parts)


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


# Commands -------------------------------------------------------------------------------------------------------------


def _commands() -> str:
    from epsilons.cli.app import epsilons

    parts = ["# Commands", inspect.cleandoc(str(epsilons.help))]
    for path, command in _walk(epsilons, "epsilons"):
        parts.append(_command(path, command))
    return "\n\n".join(parts) + "\n"


def _walk(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    with click.Context(group, info_name=path) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from _walk(command, f"{path} {name}")
            else:
                yield f"{path} {name}", command


def _command(path: str, command: click.Command) -> str:
    text, _, example = inspect.cleandoc(command.help or "").partition("\b\n")
    with click.Context(command, info_name=path) as context:
        usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"## {path} {{#{path.replace(' ', '-')}}}", f"```text\n{usage}\n```", _escape(text.strip())]
    rows = [
        f"| `{' '.join([*one.opts, *one.secondary_opts])}` | {_escape(one.help or '')} | {one.type.name} |"
        for one in command.params
        if isinstance(one, click.Option) and not one.hidden
    ]
    if rows:
        parts.append("\n".join(["| option | meaning | type |", "|---|---|---|", *rows]))
    if example.strip():
        lines = [line for line in example.replace("\b\n", "").splitlines()[1:] if line.strip()]
        parts.append("```sh\n" + inspect.cleandoc("\n" + "\n".join(lines)) + "\n```")
    return "\n\n".join(parts)
