"""What a paper says that a rerun can check, what was measured, and the verdict; as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from epsilons.papers.figures import Curve, Paper, Table

Tables = Mapping[str, Table]


class Verdict(StrEnum):
    """Whether a claim survived."""

    HOLDS = "holds"
    OTHER_CONSTANT = "holds with another constant"
    UNDECIDED = "undecided"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Finding:
    """What was measured, the verdict, and why it is not simply "holds"."""

    measured: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """One claim, in our words, with its place in the paper.

    `check` looks at the tables of all figures of the paper, by number. `instead` says what this library does where the
    paper is wrong: it makes the page of corrections.
    """

    number: int
    says: str
    place: str
    check: Callable[[Tables], Finding]
    instead: str = ""


def check_claims(paper: Paper, tables: Tables) -> list[dict[str, Any]]:
    """The claims of a paper, as JSON has them."""
    checked = []
    for claim in paper.claims:
        finding = claim.check(tables)
        head: dict[str, Any] = {"paper": paper.cite, "key": paper.key, "number": claim.number, "claim": claim.says}
        found = {"measured": finding.measured, "verdict": finding.verdict.value, "why": finding.why}
        checked.append({**head, "place": claim.place, **found, "instead": claim.instead})
    return checked


# Comparing curves --------------------------------------------------------------------------------------------------

#: How many standard errors a difference must have to count.
SURE = 2.0


def compare(lower: Curve, upper: Curve) -> Verdict:
    """Whether one curve lies below another at every place, beyond the error of the simulation."""
    gap, doubt = upper.values - lower.values, SURE * np.hypot(upper.errors, lower.errors)
    if (gap < -doubt).any():
        return Verdict.FAILS
    return Verdict.HOLDS if (gap > doubt).all() else Verdict.UNDECIDED


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Of several: one that does not hold decides, then one that is undecided."""
    found = set(verdicts)
    return next(v for v in (Verdict.FAILS, Verdict.UNDECIDED, Verdict.OTHER_CONSTANT, Verdict.HOLDS) if v in found)


def span(numbers: Sequence[float] | Any, form: str = ".3g") -> str:
    """ "2.1 to 7.9", or one number where both ends look the same."""
    low, high = f"{float(np.min(numbers)):{form}}", f"{float(np.max(numbers)):{form}}"
    return low if low == high else f"{low} to {high}"


# As pages ----------------------------------------------------------------------------------------------------------


def write_json(checked: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(list(checked), indent=2, ensure_ascii=False) + "\n"


def write_claims(checked: Sequence[Mapping[str, Any]]) -> str:
    """The page "What the papers claim"."""
    counts = {verdict: sum(one["verdict"] == verdict for one in checked) for verdict in Verdict}
    told = ", ".join(f"{verdict.value} {count}" for verdict, count in counts.items() if count)
    lines = ["# What the papers claim", ""]
    quick = " QUICK: of few trials, so that verdicts mean little." if any(one.get("quick") for one in checked) else ""
    lines += [f"{len(checked)} claims were checked by measuring them again (`epsilons papers all`). Verdicts: {told}."]
    lines[-1] += quick
    for cite in dict.fromkeys(one["paper"] for one in checked):
        lines += ["", f"## {cite}", "", "| # | claim | place | measured | verdict |", "|--:|---|---|---|---|"]
        for one in (one for one in checked if one["paper"] == cite):
            why = f": {one['why']}" if one["why"] else ""
            cells = (one["number"], one["claim"], one["place"], one["measured"], f"**{one['verdict']}**{why}")
            lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def write_corrections(checked: Sequence[Mapping[str, Any]]) -> str:
    """The page "What we corrected": every claim that this library does not follow as it stands."""
    lines = ["# What we corrected", ""]
    lines += [
        "Where a paper does not hold as it stands, or can be bettered, and what this library does instead. Measured by"
    ]
    lines[-1] += " `epsilons papers all`; all claims are on [What the papers claim](claims.md)."
    corrected = [one for one in checked if one["instead"]]
    for cite in dict.fromkeys(one["paper"] for one in corrected):
        lines += ["", f"## {cite}", "", "| place | as it stands | measured | here |", "|---|---|---|---|"]
        for one in (one for one in corrected if one["paper"] == cite):
            cells = (one["place"], one["claim"], one["measured"], one["instead"])
            lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")
