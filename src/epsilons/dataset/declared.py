"""A dataset declared in a file, `people.toml`: where the data are, whose they are, what was promised.

    source = "wages.parquet"
    person = "id"
    version = "2026-11"
    ledger = "sqlite:///wages.ledger"
    complete = ["age"]

    [preferences]
    column = "privacy"
    levels = { strict = 0.05, standard = 0.2, open = 1, public = "public" }

    [bounds]
    wage = [0, 100]

Paths are relative to the file. Whatever is not known here is an error that names it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epsilons.errors import DataError, PreferenceError
from epsilons.preferences import PUBLIC, Preferences

_TOP = {
    "source", "table", "person", "rows_per_person", "neighbors", "ledger", "complete", "version", "engine",
    "allow_individual", "types", "bounds", "preferences", "threads", "memory",
}  # fmt: skip
_PREFERENCES = {"column", "levels", "default", "file", "person", "types", "everyone"}
_PLAIN = (
    "rows_per_person",
    "neighbors",
    "complete",
    "version",
    "allow_individual",
    "types",
    "table",
    "threads",
    "memory",
)
#: What an engine on a cluster finds by itself: an address with a scheme, or a table's name.
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/.*|(?!.*\.(parquet|pq)$)[^/]+", re.DOTALL)
_MEMORY = re.compile(r"\d+(\.\d+)? ?([KMGT]i?)?B", re.IGNORECASE)


def arguments_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arguments of `Dataset` that a file stands for; nothing is opened but the file."""
    where = Path(path)
    declared = read_declared(where)
    _only(declared, _TOP, where.name)
    for name in ("source", "person", "preferences"):
        if name not in declared:
            raise DataError(
                f"{where.name} has no {name!r}.", rule="Source, person and preferences are needed.", suggest=_HINT
            )
    here = where.resolve().parent
    arguments = {name: declared[name] for name in _PLAIN if name in declared}
    local = declared.get("engine", "duckdb") == "duckdb"
    arguments["source"] = _paths(declared["source"], here, local)
    arguments["person"] = declared["person"]
    arguments["preferences"] = _preferences(declared["preferences"], here)
    arguments["ledger"] = _address(declared.get("ledger"), here)
    arguments["bounds"] = {name: _pair(name, pair) for name, pair in _table(declared, "bounds").items()}
    if local:
        _check_there(arguments["source"], where.name)
    else:
        arguments["engine"] = declared["engine"]
    _check_limits(declared)
    return arguments


def _check_there(source: str | list[str], name: str) -> None:
    """A path is the steward's own word, so the message may say which one leads nowhere."""
    for path in [source] if isinstance(source, str) else source:
        if not any(sign in path for sign in "*?[") and not os.path.exists(path):
            raise DataError(
                f"There is no file {path}.",
                rule=f"Paths are relative to {name}.",
                suggest='source = "wages.parquet"',
            )


def _check_limits(declared: Mapping[str, Any]) -> None:
    threads, memory = declared.get("threads", 1), declared.get("memory", "1GB")
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise DataError("The number of threads is not a whole number from 1 on.", suggest="threads = 2")
    if not isinstance(memory, str) or not _MEMORY.fullmatch(memory):
        raise DataError("The memory is not an amount.", rule="A number and its unit.", suggest='memory = "2GB"')


def read_declared(path: Path) -> dict[str, Any]:
    """A file's contents, which are the steward's own words and may be quoted in messages."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.", suggest="epsilons init data.parquet writes one") from None
    except (OSError, UnicodeDecodeError):
        raise DataError(f"{path} cannot be read.", rule="A dataset is declared in a TOML file.") from None
    except tomllib.TOMLDecodeError as error:
        hint = "numbers begin with a digit (0.05), words stand in quotes; epsilons init data.parquet writes such a file"
        raise DataError(f"{path.name} is not TOML: {error}.", suggest=hint) from None


_HINT = "epsilons init data.parquet writes such a file"


def _only(given: Mapping[str, Any], known: set[str], where: str) -> None:
    strange = sorted(set(given) - known)
    if strange:
        raise DataError(f"{where} says {strange[0]!r}, which means nothing.", suggest=", ".join(sorted(known)))


def _table(declared: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = declared.get(name, {})
    if not isinstance(table, Mapping):
        raise DataError(f"{name!r} is not a table.", suggest=f"[{name}]")
    return table


def _paths(source: Any, here: Path, local: bool) -> str | list[str]:
    """Paths are relative to the file; names of tables and addresses of clusters are left as they are."""
    if isinstance(source, str) and source:
        return source if not local and _ELSEWHERE.fullmatch(source) else str(here / source)
    if isinstance(source, list) and source and all(isinstance(one, str) for one in source):
        return [str(_paths(one, here, local)) for one in source]
    raise DataError("The source is a path, or a list of paths.", suggest='source = "wages.parquet"')


def _address(ledger: Any, here: Path) -> str | None:
    """A path in an address is relative to the file, like every other."""
    if ledger is None:
        return None
    if not isinstance(ledger, str):
        raise DataError("A ledger is given by its address.", suggest='ledger = "sqlite:///wages.ledger"')
    prefix = "sqlite:///"
    if ledger.startswith(prefix) and not ledger.startswith(prefix + "/"):
        return f"{prefix}{here / ledger[len(prefix) :]}"
    return ledger


def _pair(name: str, pair: Any) -> tuple[float, float]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise DataError(f"The bounds of {name!r} are not a pair.", suggest=f"{name} = [0, 100]")
    low, high = pair
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in pair):
        raise DataError(f"The bounds of {name!r} are not numbers.", suggest=f"{name} = [0, 100]")
    if not low < high:
        hint = f"{name} = [{high:g}, {low:g}]" if low > high else f"{name} = [0, 100]"
        raise DataError(
            f"The bounds of {name!r} are reversed or empty.", rule="The lower bound comes first.", suggest=hint
        )
    return low, high


def _preferences(declared: Any, here: Path) -> Preferences:
    if not isinstance(declared, Mapping):
        raise PreferenceError("Preferences are not a table.", suggest='[preferences] with column = "privacy"')
    _only(declared, _PREFERENCES, "[preferences]")
    if "everyone" in declared:
        if len(declared) > 1:
            raise PreferenceError("With everyone alike there is nothing else to say.", suggest="everyone = 0.5")
        return Preferences({}, default=_epsilon(declared["everyone"]))
    if "column" not in declared:
        raise PreferenceError("Nobody said which column holds the preferences.", suggest='column = "privacy"')
    levels = declared.get("levels")
    if levels is not None:
        if not isinstance(levels, Mapping):
            raise PreferenceError("Levels are names with epsilons.", suggest="levels = { strict = 0.05, open = 1 }")
        levels = {name: _epsilon(epsilon) for name, epsilon in levels.items()}
    default = declared.get("default")
    if default is not None and levels is None:
        default = _epsilon(default)
    if "file" in declared:
        return Preferences.from_file(
            str(here / str(declared["file"])),
            person=declared.get("person", "id"),
            column=declared["column"],
            levels=levels,
            default=default,
            types=declared.get("types"),
        )
    if levels is None:
        return Preferences.from_column(declared["column"], default)
    return Preferences.from_levels(str(declared["column"]), levels, default)


def _epsilon(value: Any) -> float:
    """A number, or the word public."""
    if value == "public":
        return PUBLIC
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PreferenceError(
            f"{value!r} is not an epsilon.", rule="A number, or the word public.", suggest="strict = 0.05"
        )
    return float(value)
