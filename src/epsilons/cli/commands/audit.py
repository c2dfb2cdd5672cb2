"""`epsilons audit`: tries to break every promise of the package, and writes what it found."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import click
import numpy as np

from epsilons import __version__
from epsilons.arrays.noisy import noisy
from epsilons.arrays.research import audit as audit_promise
from epsilons.arrays.select import select
from epsilons.auditing.attack import audit_claim
from epsilons.auditing.claims import Claim, Data
from epsilons.auditing.report import Audit
from epsilons.cli.options import Listed
from epsilons.cli.output import as_json as json_flag
from epsilons.cli.output import note, print_json, progress, write
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import NEIGHBORS
from epsilons.local import PersonalResponse
from epsilons.plots import draw_svg

_CENTRED = {"bounds": (0, 4), "missing": "center"}
#: What is asked of each statistic: missing values stand at the centre, so that every mechanism serves it. Then it is
#: asked without these `_WORDS`: values are left out that are missing, and how many there are is private.
ASKED: dict[str, dict[str, Any]] = {
    "count": {"complete": True},
    "sum": _CENTRED,
    "mean": _CENTRED,
    "variance": {"bounds": (0, 4)},
    "median": _CENTRED,
    "quantile": {"q": 0.3, **_CENTRED},
    "min": _CENTRED,
    "max": _CENTRED,
    "kth_largest": {"k": 2, **_CENTRED},
    "histogram": {"edges": (0, 1, 2)},
    "mode": {"among": ("a", "b", "c")},
    "top": {"among": ("a", "b", "c"), "k": 2},
    "linear_regression": {"bounds_X": (-1, 1), "bounds_y": (-1, 1)},
    "logistic_regression": {"bounds_X": (-1, 1)},
    "covariance": {"bounds_x": (-1, 1), "bounds_y": (-1, 1)},
    "correlation": {"bounds_x": (-1, 1), "bounds_y": (-1, 1)},
}
_WORDS = ("missing", "complete")
OTHERS = ("functions", "owners", "tables")
_EPSILONS = Listed("A,B,...", float, "numbers with commas between them, such as 0.5,1,2")
_MOST_PEOPLE, _ABC = 4, ["a", "b", "c"]
#: Of which two people have data sets enough.
_DEAR = ("histogram", "variance", "linear_regression", "logistic_regression", "covariance", "correlation")
_STYLE = "body{font-family:sans-serif;margin:2em auto;max-width:60em}td,th{padding:.15em .8em;text-align:left}"


@click.command()
@click.argument("statistics", nargs=-1, type=click.Choice([*ASKED, *OTHERS]), metavar="[PART]...")
@click.option("--epsilons", type=_EPSILONS, default="0.5,1,2", show_default=True, help="Of up to four made-up people.")
@click.option("--delta", type=float, help="Of concentrated accounts: (epsilon, delta) and rho instead of epsilons.")
@click.option("--draws", type=click.IntRange(200), default=200, show_default=True, help="Of tables and transcripts.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="A page (HTML) of all that was found.")
@json_flag
def audit(
    statistics: tuple[str, ...],
    epsilons: tuple[float, ...],
    delta: float | None,
    draws: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Try to break the promise of every mechanism, on made-up people.

    PARTS are names of statistics and models, functions (eps.select and eps.noisy), owners (who randomize their own
    answers) or tables (questions on a table, in SQL too, and whole adaptive transcripts, in epsilons and in rho, each
    through a ledger: some minutes); all but tables if left out. All but tables are audited exactly, over data sets of a
    few people; tables from draws. It fails (status 5) if anything is refuted.

    \b
    Examples:
      epsilons audit
      epsilons audit count tables --out audit.html
      epsilons audit mean linear_regression --delta 1e-6
    """
    if not 1 <= len(epsilons) <= _MOST_PEOPLE:
        raise PlanError(f"An audit is of 1 to {_MOST_PEOPLE} people.", rule="All their data sets are enumerated.")
    parts = statistics or (*ASKED, "functions", *(["owners"] if delta is None else []))
    found: dict[str, Audit] = {}
    with progress() as bar:
        shown = bar.add_task("Auditing", total=len(parts))
        for number, part in enumerate(parts):

            def step(done: float, number: int = number) -> None:
                bar.update(shown, completed=number + done)

            found[part] = audit_part(part, list(epsilons), draws, delta, step)
            step(1.0)
    if as_json:
        print_json({part: one.to_dict() for part, one in found.items()})
    else:
        write("\n\n".join(f"{part}: {one}" for part, one in found.items()))
    if out is not None:
        out.write_text(make_page(found), encoding="utf-8")
        note(f"the page is in {out}")
    refuted = [name for one in found.values() for name in one.refuted]
    if refuted:
        raise PlanError(f"Refuted: {', '.join(refuted)}.", rule="Somebody may lose more than they are charged.")


def audit_part(
    part: str, epsilons: list[float], draws: int, delta: float | None, step: Callable[[float], None]
) -> Audit:
    """What is found of a statistic by all its mechanisms under both relations, of functions, or of another front."""
    if part == "tables":
        from epsilons.dataset.audited import audit_tables

        return audit_tables(draws)
    if part == "functions":
        given: dict[str, Any] = {"function": _total, "sensitivity": 3, "step": 1, "whole": True, "delta": delta}
        found = [audit_promise(noisy, epsilons, domain=[0, 1, 3, None], neighbors=one, **given) for one in NEIGHBORS]
        if delta is None:  # a choice has none
            found += [
                audit_promise(select, epsilons, domain=[*_ABC, None], options=_ABC, neighbors=one) for one in NEIGHBORS
            ]
        return sum(found, Audit(()))
    if part == "owners":
        if delta is not None:
            raise PlanError("Owners promise epsilons without a delta.", suggest=("leave ", Argument("delta"), " out"))
        return sum([_audit_owners(epsilons, options) for options in (1, 3)], Audit(()))
    people = epsilons[:2] if part in _DEAR else epsilons
    asked = [*itertools.product(list_questions(part), NEIGHBORS)]

    def tell(number: int) -> Callable[[int, int], None]:
        return lambda done, of: step((number + done / of) / len(asked))

    audits = []
    for number, ((words, one), neighbors) in enumerate(asked):
        found_here = audit_promise(part, people, neighbors=neighbors, delta=delta, progress=tell(number), **one)
        named = [replace(finding, name=f"{finding.name}{words}") for finding in found_here.findings]
        audits.append(replace(found_here, findings=tuple(named)))
    return sum(audits, Audit(()))


def list_questions(part: str) -> list[tuple[str, dict[str, Any]]]:
    """What is asked of a statistic, and what is said of it beside its name."""
    asked = ASKED[part]
    left_out = {name: value for name, value in asked.items() if name not in _WORDS}
    return [("", asked)] if left_out == asked else [("", asked), (", values may be missing", left_out)]


def _audit_owners(epsilons: list[float], options: int) -> Audit:
    """Randomized responses at everybody's own epsilon, exactly: what all of them send together."""
    protocol = PersonalResponse(epsilons, options)
    codes, sent = protocol.roster.codes.tolist(), range(protocol.outputs)

    def law(truths: Data) -> tuple[Any, Any]:
        each = []
        for code, truth in zip(codes, truths, strict=True):
            own = protocol.protocols[code]
            chances = {(truth,): 1} if own is None else own.law(truth)
            each.append([float(chances.get((output,), 0)) for output in sent])
        chance = functools.reduce(np.multiply.outer, map(np.array, each)).reshape(-1)
        with np.errstate(divide="ignore"):
            return list(itertools.product(sent, repeat=len(codes))), np.log(chance)

    name, granted = f"randomized response of {options + 1} answers, replace", tuple(epsilons)
    return Audit(tuple(audit_claim(Claim(name, granted, granted, "replace", tuple(sent), law=law), 200, 0.999)))


def _total(values: Any) -> float:
    return float(sum(value for value in values if value == value))


def make_page(found: dict[str, Audit]) -> str:
    """One page: a section for each part, with its table and its picture."""
    sections = []
    for part, one in found.items():
        try:
            picture = draw_svg(one.plot)
        except PlanError:  # without matplotlib
            picture = ""
        sections.append(f"<h2>{escape(part)}</h2>{one._repr_html_()}{picture}")
    refuted = [name for one in found.values() for name in one.refuted]
    verdict = f"Refuted: {', '.join(refuted)}." if refuted else "Nothing was refuted."
    told = (
        "An audit can refute a promise; it cannot prove one. Exact findings speak for the data that were enumerated, "
    )
    told += "bounds from draws for what so many draws can show."
    head = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Audit</title><style>{_STYLE}</style>"
    body = f"<h1>epsilons {__version__}: audit</h1><p>{escape(verdict)} {told}</p>"
    return f"{head}<body>{body}{''.join(sections)}</body></html>\n"


COMMANDS = {"audit": audit}
