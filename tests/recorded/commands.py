"""What is asked on the command line: answers, plans, refusals, the ledger's own commands.

Commands draw from the operating system. What it gives is held still while one runs, so that answers repeat.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet

from epsilons.cli.app import main
from recorded.outcomes import Case, Outcome, attempt, digest, rounded
from recorded.tables import rows
from recorded.world import World, fixed_randomness

_TOP = 'source = "people.parquet"\nperson = "id"\nversion = "1"\nthreads = 1\ncomplete = ["age"]\nceiling = 1000\n'
_BOUNDS = "\n[bounds]\nwage = [0, 100]\nage = [0, 100]\n"
_COLUMN = '\n[preferences]\ncolumn = "epsilon"\n'
_LEVELS = (
    '\n[preferences]\ncolumn = "privacy"\nlevels = { strict = 40, standard = 150, open = 600, public = "public" }\n'
)
#: The files that commands are given.
FILES = {
    "people.toml": _TOP + 'ledger = "sqlite:///people.ledger"\n' + _LEVELS + _BOUNDS,
    "small.toml": _TOP + 'ledger = "sqlite:///small.ledger"\n' + _COLUMN + _BOUNDS,
    "public.toml": _TOP + 'ledger = "sqlite:///public.ledger"\n\n[preferences]\neveryone = "public"\n' + _BOUNDS,
    "memory.toml": _TOP + 'ledger = "memory"\n' + _COLUMN,
    "several.toml": _TOP.replace("people.parquet", "several.parquet")
    + 'rows_per_person = 3\nneighbors = "replace"\nledger = "sqlite:///several.ledger"\n' + _LEVELS + _BOUNDS,
    "lost.toml": _TOP.replace("people.parquet", "lost.parquet") + _COLUMN,
    "strange.toml": _TOP + "nonsense = 1\n" + _COLUMN,
    "broken.toml": "source = ",
    "nobody.toml": 'source = "people.parquet"\n' + _COLUMN,
    "wishes.toml": _TOP + '\n[preferences]\ncolumn = "nowhere"\n',
    "reversed.toml": _TOP + _COLUMN + "\n[bounds]\nwage = [100, 0]\n",
    "levels.toml": _TOP + '\n[preferences]\ncolumn = "privacy"\nlevels = { strict = 0.5 }\n',
}  # fmt: skip

_MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(\+00:00|Z)?"), "(time)"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d\b"), "(time)"),
    (re.compile(r"release \d+ of \d{4}-\d\d-\d\d"), "release (one)"),
    (re.compile(r"Preparation took [^ ]+ s"), "Preparation took (some) s"),
    (re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b"), "(digest)"),
)
#: Parts of documents that are another at every run.
_VARYING = {
    "preparation_seconds",
    "registered",
    "ledger",
    "head",
    "at",
    "number",
    "hash",
    "id",
    "since",
    "joined",
    "roster",
}


def command(name: str, *arguments: str) -> Case:
    """One command, in a directory with the files above; later ones find the ledgers of earlier ones."""

    def run(world: World) -> Outcome:
        directory = _directory(world)
        out, err = io.StringIO(), io.StringIO()

        def do() -> Outcome:
            with (
                contextlib.chdir(directory),
                fixed_randomness(),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                status = main(list(arguments))
            said = _document(out.getvalue()) if "--json" in arguments else _lines(out.getvalue(), directory)
            return {"status": status, "stdout": said, "stderr": _lines(err.getvalue(), directory)}

        return attempt(do)

    return Case(f"commands/{name}", run)


def _directory(world: World) -> Path:
    directory = world.directory / "commands"
    if not directory.exists():
        directory.mkdir()
        pyarrow.parquet.write_table(rows(), directory / "people.parquet")
        pyarrow.parquet.write_table(rows(40, 3), directory / "several.parquet")
        for name, text in FILES.items():
            (directory / name).write_text(text, encoding="utf-8")
        for name in ("people", "small", "public", "several"):
            quiet = io.StringIO()
            with (
                contextlib.chdir(directory),
                fixed_randomness(),
                contextlib.redirect_stdout(quiet),
                contextlib.redirect_stderr(quiet),
            ):
                assert main(["register", f"{name}.toml", "--yes"]) == 0, quiet.getvalue()
    return directory


def _lines(text: str, directory: Path) -> Any:
    """What was printed, without what differs from run to run; long texts as their first line and a digest."""
    for places in (directory.resolve(), directory):
        text = text.replace(str(places), "(here)")
    text = "\n".join(line.rstrip() for line in _masked(text).splitlines())
    return text if len(text) <= 400 else f"{text[:120]}... {digest(text)}"


def _masked(text: str) -> str:
    for mask, instead in _MASKS:
        text = mask.sub(instead, text)
    return text


def _document(text: str) -> Any:
    """A JSON document: short ones as they are, of long ones what can be read at a glance and a digest."""
    if not text:
        return ""
    told = _still(json.loads(text))
    whole = rounded(told, 9)
    if len(json.dumps(whole)) <= 600:
        return whole
    found: dict[str, Any] = {"all": digest(whole)}
    if isinstance(whole, dict):
        for part in ("release", "interval", "left", "stored", "statistic", "share", "people", "charges"):
            if part in whole:
                found[part] = _glance(whole[part])
        if "rows" in whole:
            found["rows"] = [[row.get("mechanism"), row.get("error")] for row in whole["rows"]]
        if "answers" in whole:
            found["answers"] = {name: _glance(one["release"]) for name, one in whole["answers"].items()}
    return found


def _glance(part: Any) -> Any:
    if isinstance(part, dict) and "mechanism" in part:
        return {name: part[name] for name in ("value", "error", "mechanism", "charges")}
    return part if len(json.dumps(part)) <= 300 else digest(part)


def _still(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _still(one) for key, one in value.items() if key not in _VARYING}
    if isinstance(value, list):
        return [_still(one) for one in value]
    return _masked(value) if isinstance(value, str) else value


def cases() -> Iterator[Case]:
    asked: dict[str, tuple[str, ...]] = {
        "count": ("count", "--where", "age >= 40"),
        "count of rows": ("count", "--of", "rows"),
        "count of a column": ("count", "union"),
        "sum": ("sum", "wage"),
        "mean": ("mean", "age"),
        "mean by": ("mean", "wage", "--by", "region=north,south", "--where", "age < 70"),
        "variance": ("variance", "age"),
        "median": ("median", "age", "--step", "1"),
        "quantile": ("quantile", "age", "0.9", "--step", "1"),
        "min": ("min", "age", "--step", "1"),
        "max": ("max", "wage", "--step", "1"),
        "bins": ("histogram", "wage", "--edges", "0,30,60,100"),
        "categories": ("histogram", "region", "--categories", "north,south"),
    }
    for name, (statistic, *rest) in asked.items():
        yield command(f"public {name}", statistic, "public.toml", *rest, "--json")
        if name not in ("count of rows", "sum", "variance", "min", "max"):
            yield command(f"people {name}", statistic, "people.toml", *rest, "--share", "0.01", "--json")
        if name in ("mean", "median", "bins", "mean by"):
            yield command(f"dry {name}", statistic, "people.toml", *rest, "--share", "0.01", "--dry-run", "--json")
        if name in ("mean", "mean by"):
            yield command(f"words {name}", statistic, "people.toml", *rest, "--share", "0.01")
            yield command(f"dry words {name}", statistic, "people.toml", *rest, "--share", "0.01", "--dry-run")
            yield command(f"several {name}", statistic, "several.toml", *rest, "--share", "0.01", "--json")
    more: dict[str, tuple[str, ...]] = {
        "stored": ("mean", "people.toml", "age", "--share", "0.01", "--json"),
        "mechanism": ("mean", "people.toml", "age", "--mechanism", "minimum", "--share", "0.01", "--json"),
        "sample": ("median", "people.toml", "age", "--mechanism", "sample", "--threshold", "mean", "--json"),
        "error": ("count", "people.toml", "--where", "age > 50", "--error", "9", "--json"),
        "guesses": ("mean", "people.toml", "wage", "--spread", "9", "--location", "40", "--json"),
        "center": ("mean", "people.toml", "wage", "--missing", "center", "--share", "0.01", "--json"),
        "bounds": ("mean", "people.toml", "wage", "--bounds", "0,50", "--share", "0.01", "--json"),
        "analyst": ("count", "people.toml", "--analyst", "ann", "--share", "0.01", "--json"),
        "plan": ("plan", "people.toml", "mean", "wage", "--share", "0.1"),
        "plan json": ("plan", "people.toml", "count", "--density", "0.2", "--json"),
        "plan quantile": ("plan", "people.toml", "quantile", "age", "--q", "0.9", "--json"),
        "plan quantile without q": ("plan", "people.toml", "quantile", "age"),
        "plan public": ("plan", "public.toml", "mean", "wage"),
        "sql": ("sql", "people.toml", "SELECT AVG(wage) AS w, COUNT(*) FROM people", "--json"),
        "sql words": ("sql", "people.toml", "SELECT MEDIAN(age), COUNT(DISTINCT id) FROM people WHERE age > 20"),
        "sql dry": ("sql", "people.toml", "SELECT AVG(wage), COUNT(*) FROM people WHERE age < 50", "--dry-run"),
        "sql dry json": ("sql", "people.toml", "SELECT SUM(age), COUNT(*) FROM people", "--dry-run", "--json"),
        "sql public": ("sql", "public.toml", "SELECT AVG(wage), COUNT(*) FROM people", "--json"),
        "sql groups": (
            "sql", "people.toml", "SELECT region, AVG(wage) FROM people GROUP BY region", "--keys", "region=north,west",
            "--json",
        ),
        "sql without keys": ("sql", "people.toml", "SELECT region, AVG(wage) FROM people GROUP BY region"),
        "sql bad": ("sql", "people.toml", "SELECT * FROM people"),
        "check": ("check", "people.toml"),
        "check json": ("check", "people.toml", "--json"),
        "check memory": ("check", "memory.toml"),
        "check several": ("check", "several.toml", "--json"),
        "sync": ("sync", "people.toml", "--json"),
        "small first": ("mean", "small.toml", "age", "--share", "0.9", "--json"),
        "small second": ("count", "small.toml", "--where", "age > 30", "--share", "0.9", "--json"),
        "small third": ("sum", "small.toml", "age", "--share", "1", "--json"),
        "small fourth": ("variance", "small.toml", "age", "--share", "1", "--json"),
        "small nothing left": ("median", "small.toml", "age", "--share", "1"),
        "small nothing left either": ("min", "small.toml", "age", "--share", "1"),
        "small stored": ("mean", "small.toml", "age", "--share", "0.9"),
        "ledger show": ("ledger", "show", "small.ledger", "--json"),
        "ledger show words": ("ledger", "show", "small.ledger"),
        "ledger history": ("ledger", "history", "small.ledger", "--json"),
        "ledger history words": ("ledger", "history", "people.ledger"),
        "ledger person": ("ledger", "person", "p1", "small.ledger", "--json"),
        "ledger person words": ("ledger", "person", "p3", "small.ledger"),
        "ledger nobody": ("ledger", "person", "nobody", "small.ledger"),
        "ledger verify": ("ledger", "verify", "small.ledger", "--json"),
        "ledger export": ("ledger", "export", "small.ledger", "--json"),
        "ledger adopt": ("ledger", "adopt", "small.ledger", "--json"),
        "completion": ("completion", "bash"),
        "version": ("--version",),
        "help": ("--help",),
        "help mean": ("mean", "--help"),
        "sql long": (
            "sql", "people.toml", "SELECT AVG(age) AS a, AVG(wage) AS b, MEDIAN(age) AS c, COUNT(*) FROM people",
            "--share", "0.001",
        ),
        "ledger nowhere": ("ledger", "show", "nowhere.ledger"),
        "ledger which": ("ledger", "show"),
        "init": ("init", "people.parquet", "--out", "made.toml", "--person", "id", "--preferences", "epsilon"),
        "init again": ("init", "people.parquet", "--out", "made.toml", "--person", "id", "--preferences", "epsilon"),
        "init nowhere": ("init", "nowhere.parquet", "--out", "x.toml", "--person", "id", "--preferences", "epsilon"),
        "check made": ("check", "made.toml", "--json"),
    }  # fmt: skip
    for name, arguments in more.items():
        yield command(name, *arguments)
    refused = [
        "nonsense",
        "mean",
        "mean people.toml",
        "mean nowhere.toml wage",
        "mean lost.toml wage",
        "check strange.toml",
        "check broken.toml",
        "check nobody.toml",
        "check wishes.toml",
        "check reversed.toml",
        "check levels.toml",
        "mean memory.toml wage",
        "mean people.toml nowhere",
        "mean people.toml wage --share 2",
        "mean people.toml wage --share a",
        "mean people.toml wage --share 0.1 --error 3",
        "mean people.toml wage --bounds 9,1",
        "mean people.toml wage --mechanism laplace",
        "mean people.toml wage --where 'age >'",
        "mean people.toml wage --by region",
        "mean people.toml wage --by region=a,,b",
        "mean people.toml wage --by code=a",
        "mean people.toml wage --by 'region=[\"a\"'",
        "mean people.toml wage --missing ignore",
        "quantile people.toml age 7",
        "histogram people.toml age",
        "median people.toml age --step 0",
        "count people.toml --error 0.000001",
        "mean people.toml wage --threshold middle --mechanism sample",
        "plan people.toml mode",
        "median people.toml age --mechanism robust",
        "mean people.toml wage --nonsense",
    ]
    for line in refused:
        yield command(f"refused {line}", *shlex.split(line))
