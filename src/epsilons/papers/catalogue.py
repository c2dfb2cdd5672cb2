"""Which papers there are, and where their figures are found."""

from __future__ import annotations

import importlib
from typing import cast

from epsilons.errors import Argument, PlanError
from epsilons.papers.figures import Figure, Paper

#: What is typed, and the module that declares it as `PAPER`; "together" belongs to all of them.
PAPERS = {
    "pdp": "epsilons.papers.pdp",
    "idp": "epsilons.papers.idp",
    "sampling": "epsilons.papers.sampling",
    "mixed": "epsilons.papers.mixed",
    "together": "epsilons.papers.together",
}


def load_paper(key: str) -> Paper:
    """One paper's declaration."""
    return cast(Paper, importlib.import_module(PAPERS[key]).PAPER)


def choose(key: str, number: str | None = None) -> list[tuple[Paper, Figure]]:
    """The figures that are asked for: all of a paper, one of them, or one panel such as "1a"."""
    papers = [load_paper(one) for one in PAPERS if key in ("all", one)]
    found = [(paper, figure) for paper in papers for figure in paper.figures]
    if number is None:
        return found
    known = {figure.number: (paper, figure) for paper, figure in found}
    panels = [(p, f.only(letter)) for p, f in found for letter in f.panels if letter]
    known |= {panel.number: (paper, panel) for paper, panel in panels}
    if key == "all" or number not in known:
        rule = (
            f"Figures belong to one paper: {', '.join(PAPERS)}." if key == "all" else f"There are {', '.join(known)}."
        )
        what = ("There is no ", Argument("figure", number), ".")
        raise PlanError(what, rule=rule, suggest="epsilons papers --list")
    return [known[number]]
