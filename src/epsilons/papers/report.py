"""What a run leaves: for every figure a picture and a file of numbers, and for all of them the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilons.errors import Argument, PlanError
from epsilons.papers.claims import Verdict, check_claims, write_claims, write_json
from epsilons.papers.drawing import draw_figure
from epsilons.papers.figures import Figure, Paper, Table
from epsilons.papers.running import Progress, check_parts, measure_all


@dataclass(frozen=True)
class Report:
    """The claims that were checked, as claims.json has them."""

    claims: Sequence[Mapping[str, Any]]
    verdicts = tuple(verdict.value for verdict in Verdict)

    def counts(self) -> list[tuple[str, ...]]:
        """A row for each paper: how many claims, how many of each verdict."""
        rows = []
        for cite in dict.fromkeys(one["paper"] for one in self.claims):
            found = [one["verdict"] for one in self.claims if one["paper"] == cite]
            rows.append((cite, str(len(found)), *(str(found.count(verdict)) for verdict in self.verdicts)))
        return rows


def make_report(
    chosen: Sequence[tuple[Paper, Figure]],
    out: Path,
    *,
    jobs: int,
    seed: int,
    quick: bool,
    progress: Progress,
    checkins: str = "",
) -> Report:
    """Measure what is chosen, and write everything to a directory; claims only of papers that were measured whole."""
    check_parts([figure for _, figure in chosen])
    if checkins and not any(panel.reads_checkins for _, figure in chosen for panel in figure.panels.values()):
        unread = ("Nothing that was chosen reads ", Argument("checkins"), ".")
        rule = "Joy and Gerla's Figure 2 and map do."
        raise PlanError(unread, rule=rule, suggest="epsilons papers sampling --figure 2 --checkins FILE")
    try:
        store = out / ".cells"
        tables = measure_all(chosen, store, jobs=jobs, seed=seed, quick=quick, progress=progress, checkins=checkins)
        by_paper: dict[str, dict[str, Table]] = {}
        for (paper, figure), table in zip(chosen, tables, strict=True):
            name = f"{paper.key}-{figure.number}"
            (out / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
            draw_figure(paper, figure, table, out / f"{name}.png", " (quick: few trials)" if quick else "")
            by_paper.setdefault(paper.key, {})[figure.number] = table
        papers = {paper.key: paper for paper, _ in chosen}
        # A claim may look at any figure of its paper.
        whole = [paper for paper in papers.values() if all(f.number in by_paper[paper.key] for f in paper.figures)]
        marked = {"quick": True} if quick else {}
        checked = [one | marked for paper in whole for one in check_claims(paper, by_paper[paper.key])]
        if checked:
            (out / "claims.json").write_text(write_json(checked), encoding="utf-8")
            (out / "claims.md").write_text(write_claims(checked), encoding="utf-8")
    except OSError as error:
        what = f"The results cannot be written: {error.strerror}."
        raise PlanError(what, suggest="another directory: --out results") from None
    return Report(checked)
