"""Which engine a table is read with: each engine says which sources it takes.

An engine is one file in this room. It registers its class, which has a `name`, the `options` that it understands, and
`takes`, which looks at a source's type alone.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Protocol, TypeVar, cast

from epsilons.engines.base import Engine
from epsilons.errors import DataError

_REGISTRY: dict[str, type[Any]] = {}


class Registered(Engine, Protocol):
    """What an engine's class says about itself."""

    name: ClassVar[str]
    options: ClassVar[frozenset[str]]

    @staticmethod
    def takes(source: Any) -> bool:
        """Whether this engine is the one for a source, if nobody says otherwise."""


_E = TypeVar("_E", bound=Registered)


def register(engine: type[_E]) -> type[_E]:
    """Make an engine known by its name; its file needs nothing else."""
    _REGISTRY[engine.name] = engine
    return engine


def engines() -> dict[str, type[Registered]]:
    """Every engine of this room by name. None of them loads what it runs on before it is opened."""
    import epsilons.engines

    for module in iter_modules(epsilons.engines.__path__):
        import_module(f"{epsilons.engines.__name__}.{module.name}")
    return dict(_REGISTRY)


def open_table(source: Any, engine: str | None = None, **options: Any) -> Engine:
    """The table that a source is, in the engine named, or in the one that takes such sources."""
    known = engines()
    if engine is None:
        engine = next((name for name, kind in known.items() if kind.takes(source)), None)
        if engine is None:
            raise DataError(
                f"A table cannot be read from {type(source).__name__!r}.",
                rule="A path or paths, a frame of pandas, polars, Arrow or Spark, or a DuckDB relation.",
                hint="a .parquet, .csv, .ndjson or .duckdb file",
            )
    if not isinstance(engine, str) or engine not in known:
        raise DataError(f"Unknown engine {engine!r}.", hint=", ".join(sorted(known)))
    kind = known[engine]
    given = {name: value for name, value in options.items() if value is not None}
    strange = sorted(set(given) - kind.options)
    if strange:
        takers = sorted(name for name, other in known.items() if strange[0] in other.options)
        raise DataError(f"The engine {engine!r} takes no {strange[0]!r}.", hint=f"for {', '.join(takers)} only")
    build = cast(Any, kind)
    opened: Engine = build(source, **given)
    return opened
