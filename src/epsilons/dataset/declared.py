"""A dataset declared in a file, `people.toml`: where the data are, whose they are, what was promised.

    name = "wages"
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

    [keys]
    region = ["north", "south"]

Paths are relative to the file. An unknown key is an error that names it. The file is read to register the dataset; to
ask, it only says which dataset of which ledger is meant, and is refused where it no longer says what was registered.
"""

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from epsilons.arguments.checks import check_real, check_whole
from epsilons.dataset.facts import tell_changes
from epsilons.dataset.registering import Declared, UnregisteredError
from epsilons.dataset.registry import Registry
from epsilons.engines.base import Schema
from epsilons.engines.postgresql import is_address
from epsilons.errors import DataError, LedgerError, PreferenceError
from epsilons.measure import Measure
from epsilons.preferences import PUBLIC, Preferences

#: Arguments of `Dataset.register` that are taken as they stand.
_PLAIN = (
    "name", "person", "rows_per_person", "neighbors", "complete", "public", "keys", "version", "allow_individual",
    "ceiling", "measure", "delta", "renews", "questions", "accounts", "types", "table", "dialect", "threads", "memory",
    "engine",
)  # fmt: skip
_KEYS = {*_PLAIN, "source", "ledger", "snapshots", "bounds", "preferences"}
_PREFERENCES = {"column", "levels", "default", "file", "person", "types", "dialect", "everyone"}
#: All that stands in a file of a dataset behind a server; `key` is the path of a key.
_BEHIND_SERVER = {"server", "name", "key"}
#: What an engine on a cluster finds by itself: an address with a scheme, or a table's name.
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/.*|(?!.*\.(parquet|pq)$)[^/]+", re.DOTALL)
_MEMORY = re.compile(r"\d+(\.\d+)? ?([KMGT]i?)?B", re.IGNORECASE)
#: What only a ledger that lasts takes.
_LASTING = ("snapshots", "renews", "accounts")
#: What a registration takes besides what it settles.
_NOT_SETTLED = ("source", "ledger", "snapshots", "preferences")
_D = TypeVar("_D")
_HINT = "epsilons init data.parquet writes such a file"
_LEDGER = 'ledger = "sqlite:///people.ledger" in the file, then '


def arguments_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arguments of `Dataset.register` that a file stands for; nothing is opened but the file.

    What stands in it is the steward's own and may be quoted in messages. Without a name it is called like the file.
    """
    where = Path(path)
    declared = _read(where)
    if "server" in declared:
        rule = "From here it is asked: statistics, plan, budget, relation, sql, batch, ledger show, ledger answers."
        hint = "the steward runs this command on the server, with the file that declares the dataset"
        raise DataError(f"{where.name} names a dataset behind a server.", rule=rule, suggest=hint)
    _check_keys(declared, _KEYS, where.name)
    for name in (name for name in ("source", "person", "preferences") if name not in declared):
        raise DataError(f"{where.name} has no {name!r}.", rule="Every dataset has one.", suggest=_HINT)
    here = where.resolve().parent
    arguments = {name: declared[name] for name in _PLAIN if name in declared}
    local = arguments.get("engine", "duckdb") == "duckdb"
    arguments["source"] = _resolve(declared["source"], here, local)
    arguments["preferences"] = _read_preferences(declared["preferences"], here)
    arguments["ledger"] = resolve_address(declared.get("ledger"), here)
    arguments.setdefault("name", where.stem)
    if "snapshots" in declared:
        arguments["snapshots"] = str(here / str(declared["snapshots"]))
    bounds = declared.get("bounds", {})
    if not isinstance(bounds, Mapping):
        raise DataError("'bounds' is not a table.", suggest="[bounds]")
    arguments["bounds"] = {name: _read_pair(name, pair) for name, pair in bounds.items()}
    few = DataError("The number of threads is not a whole number from 1 on.", suggest="threads = 2")
    check_whole(declared.get("threads", 1), refusal=few)
    memory = declared.get("memory", "1GB")
    if not isinstance(memory, str) or not _MEMORY.fullmatch(memory):
        raise DataError("The memory is not an amount.", rule="A number and its unit.", suggest='memory = "2GB"')
    return arguments


def find_server(path: str | os.PathLike[str]) -> tuple[str, str, str | None] | None:
    """(address, name of the dataset, file of the key) where a file names a server; None where it declares a dataset."""
    where = Path(path)
    declared = _read(where)
    if "server" not in declared:
        return None
    _check_keys(declared, _BEHIND_SERVER, where.name)
    for name in (name for name, value in declared.items() if not isinstance(value, str)):
        raise DataError(f"{name!r} is not text.", suggest='server = "https://stats.example.org"')
    key = str(where.resolve().parent / declared["key"]) if "key" in declared else None
    return declared["server"], declared.get("name", where.stem), key


def lasting_arguments(path: str | os.PathLike[str], reading: bool = False) -> dict[str, Any]:
    """The same, of a file that has to name a ledger, and where it is to be read, a source that is there."""
    arguments, name = arguments_of(path), Path(path).name
    found = arguments["source"] if reading and arguments.get("engine", "duckdb") == "duckdb" else []
    for one in [found] if isinstance(found, str) else found:
        if not is_address(one) and not any(sign in one for sign in "*?[") and not os.path.exists(one):
            rule = f"Paths are relative to {name}. What is registered is asked without its source."
            hint = 'the file at its place, to register it again; or another one, source = "other.parquet"'
            raise DataError(f"There is no file {one}.", rule=rule, suggest=hint)
    if arguments["ledger"] is None:
        rule = "A dataset is registered in a ledger, and asked by it."
        raise LedgerError(f"{name} names no ledger.", rule=rule, suggest=_LEDGER + _register(path))
    return arguments


def find_accounts(path: str | os.PathLike[str]) -> tuple[str, str]:
    """(the name, the address of the ledger) of a dataset whose people have accounts that others can look at."""
    arguments = lasting_arguments(path)
    if arguments["ledger"] == "memory":
        what, rule = f"The ledger of {Path(path).name} is in memory.", "It is gone with the process that made it."
        raise LedgerError(what, rule=rule, suggest=_LEDGER + _register(path))
    return arguments["name"], arguments["ledger"]


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """What is not registered, is told to be registered by this file."""
    try:
        yield
    except UnregisteredError as none:
        raise LedgerError(none.what, rule=none.rule, suggest=f"{_register(path)}, by the steward") from None


def _register(path: str | os.PathLike[str]) -> str:
    """The command, as it can be pasted."""
    return f"`{shlex.join(['epsilons', 'register', os.fspath(path)])}`"


def open_declared(path: str | os.PathLike[str], opener: Callable[..., _D], maker: Callable[..., _D]) -> _D:
    """What `opener` opens of a dataset that the file names; with a ledger in memory `maker` registers it on the way."""
    arguments = lasting_arguments(path)
    if arguments["ledger"] == "memory":
        Declared(**{name: value for name, value in arguments.items() if name not in _NOT_SETTLED})  # refuses terms
        return maker(**{name: value for name, value in arguments.items() if name not in _LASTING})
    with naming(path):
        return opener(arguments["name"], **{name: arguments.get(name) for name in ("ledger", "threads", "memory")})


def check_as_registered(
    path: str | os.PathLike[str], registry: Registry, schema: Schema, levels: Mapping[str, float]
) -> None:
    """Refuse a file that says something else than what was registered: asking changes nothing."""
    arguments, terms, made = arguments_of(path), registry.ledger.terms(), registry.registration
    declared = Declared(**{name: value for name, value in arguments.items() if name not in _NOT_SETTLED})
    said = declared.about(schema, arguments["source"], arguments["preferences"])
    fixed = {name: (getattr(terms, name), getattr(declared, name)) for name in ("neighbors", "allow_individual")}
    fixed |= {"version": (made.version, declared.version or made.version)}
    fixed |= {"measure": (str(registry.measure), str(Measure.of_text(declared.counted)))}
    changed = [f"{name} {there} → {here}" for name, (there, here) in fixed.items() if here != there]
    # Levels without a period are as much a part of what was chosen as those that have one.
    named, periods = arguments["preferences"].levels, made.about.get("renews", {})
    periods = {name: period for name, period in periods.items() if name in named}
    said = {"renews": {}, **said}
    changed += [told for told, _ in tell_changes({**made.about, "renews": periods}, said)]
    if changed:
        what = f"{Path(path).name} says something else than was registered: {'; '.join(changed)}."
        hint = f"{_register(path)}, by the steward; or the file as it was"
        lasting = [name for name, (there, here) in fixed.items() if name != "version" and here != there]
        lasting += [name for name in ("person", "rows_per_person") if made.about[name] != said[name]]
        lasting += ["renews"] if any(said["renews"].get(name) != periods.get(name) for name in levels) else []
        if lasting:  # registering it would be refused
            hint = f"the file as it was, since {' and '.join(lasting)} cannot be settled anew; or a new ledger"
        raise LedgerError(what, rule="Asking redefines nothing.", suggest=hint)
    check_meanings(path, arguments["preferences"].levels, levels)


def check_meanings(path: str | os.PathLike[str], named: Mapping[str, float], levels: Mapping[str, float]) -> None:
    """Refuse a file whose names of levels mean something else than in the ledger: nobody is misread."""
    held = {name: levels.get(name) for name in named}
    meant = [told for told, _ in tell_changes({"levels": held}, {"levels": named})]
    if meant:  # perhaps by another dataset of the ledger: this file as it was would not help
        what = f"{Path(path).name} says something else than the ledger: {'; '.join(meant)}."
        rule = "Levels mean what was registered last, in all datasets of a ledger."
        hint = f"the levels as the ledger has them; or {_register(path)}, by the steward"
        raise LedgerError(what, rule=rule, suggest=hint)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.", suggest="epsilons init data.parquet writes one") from None
    except (OSError, UnicodeDecodeError):
        raise DataError(f"{path} cannot be read.", rule="A dataset is declared in a TOML file.") from None
    except tomllib.TOMLDecodeError as error:
        hint = f"numbers begin with a digit (0.05), text stands in quotes; {_HINT}"
        raise DataError(f"{path.name} is not TOML: {error}.", suggest=hint) from None


def _check_keys(given: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in sorted(set(given) - known):
        raise DataError(f"Unknown key {name!r} in {where}.", suggest=", ".join(sorted(known)))


def _resolve(source: Any, here: Path, local: bool) -> str | list[str]:
    """Paths are relative to the file; names of tables and addresses of clusters are left as they are."""
    if isinstance(source, list) and source and all(isinstance(one, str) for one in source):
        return [str(_resolve(one, here, local)) for one in source]
    if not isinstance(source, str) or not source:
        raise DataError("The source is a path, or a list of paths.", suggest='source = "wages.parquet"')
    if is_address(source):
        return source
    if not local:
        return source if _ELSEWHERE.fullmatch(source) else str(here / source)
    return str(here / source)


def resolve_address(ledger: Any, here: Path) -> str | None:
    """A path in an address is relative to the file, like every other."""
    if ledger is not None and not isinstance(ledger, str):
        raise DataError("A ledger is given by its address.", suggest='ledger = "sqlite:///wages.ledger"')
    prefix = "sqlite:///"
    if ledger is None or not ledger.startswith(prefix) or ledger.startswith(prefix + "/"):
        return ledger
    return f"{prefix}{here / ledger.removeprefix(prefix)}"


def _read_pair(name: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = pair
        check_real(low), check_real(high)
    except (TypeError, ValueError):
        raise DataError(f"The bounds of {name!r} are not a pair of numbers.", suggest=f"{name} = [0, 100]") from None
    if not low < high:
        hint = f"{name} = [{high:g}, {low:g}]" if low > high else f"{name} = [0, 100]"
        raise DataError(f"The bounds of {name!r} are reversed or empty.", suggest=hint)
    return low, high


def _read_preferences(declared: Any, here: Path) -> Preferences:
    if not isinstance(declared, Mapping):
        raise PreferenceError("Preferences are not a table.", suggest='[preferences] with column = "privacy"')
    _check_keys(declared, _PREFERENCES, "[preferences]")
    if "everyone" in declared:
        if len(declared) > 1:
            raise PreferenceError("With everyone alike there is nothing else to say.", suggest="everyone = 0.5")
        return Preferences({}, default=_read_epsilon(declared["everyone"]))
    if "column" not in declared:
        raise PreferenceError("It is not known which column holds the preferences.", suggest='column = "privacy"')
    levels, default = declared.get("levels"), declared.get("default")
    if levels is not None:
        if not isinstance(levels, Mapping):
            raise PreferenceError("Levels are names with epsilons.", suggest="levels = { strict = 0.05, open = 1 }")
        levels = {name: _read_epsilon(epsilon) for name, epsilon in levels.items()}
    elif default is not None:
        default = _read_epsilon(default)
    if "file" in declared:
        file, person, types = str(here / str(declared["file"])), declared.get("person", "id"), declared.get("types")
        given = {"column": declared["column"], "levels": levels, "default": default, "types": types}
        given["dialect"] = declared.get("dialect")
        return Preferences.from_file(file, person=person, **given)
    if levels is None:
        return Preferences.from_column(declared["column"], default)
    return Preferences.from_levels(str(declared["column"]), levels, default)


def _read_epsilon(value: Any) -> float:
    if value == "public":
        return PUBLIC
    try:
        return check_real(value)
    except TypeError:
        raise PreferenceError(f"{value!r} is not an epsilon.", suggest='a number, or "public"') from None
