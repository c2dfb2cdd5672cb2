"""`epsilons papers`: the papers' experiments, measured again."""

from pathlib import Path

import click

from epsilons.cli.output import note, progress, width, write
from epsilons.display import show_count, text_table
from epsilons.papers.catalogue import PAPERS


@click.command()
@click.argument("which", type=click.Choice(["all", *PAPERS]), default="all", metavar="[PAPER]")
@click.option("--figure", metavar="NUMBER", help="One figure of a paper, or one panel, such as 1a.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for pictures, numbers and claims: results, or results-quick with --quick, unless given.",
)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes at a time.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same numbers.")
@click.option("--quick", is_flag=True, help="A few trials of everything, within a minute: to see that it runs.")
@click.option(
    "--checkins",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Check-ins in SNAP's format for sampling's Figure 2 and map, in place of a made-up city.",
)
@click.option("--list", "listing", is_flag=True, help="List the figures and leave.")
def papers(
    which: str,
    figure: str | None,
    out: Path | None,
    jobs: int,
    seed: int,
    quick: bool,
    checkins: str | None,
    listing: bool,
) -> None:
    """Measure a paper's figures again, and check what it claims.

    PAPER is all (also if left out), pdp (Jorgensen et al. 2015), idp (Soria-Comas et al. 2017), sampling (Joy and Gerla
    2017), mixed (Ferrando et al. 2021) or together (one figure over all of them). Every figure becomes a picture (PNG)
    and a file of numbers (CSV) in the directory; claims.md and claims.json say which claims hold. A run that was
    interrupted is taken up again: what was measured is kept in .cells there. Draws repeat themselves and truths stand
    beside estimates: use it only on data that are made up or public.

    \b
    Examples:
      epsilons papers mixed --figure 1b --quick
      epsilons papers all --out results --jobs 2
    """
    from epsilons.papers.catalogue import choose
    from epsilons.papers.report import make_report

    chosen, out = choose(which, figure), out or Path("results-quick" if quick else "results")
    if listing:
        for paper in {paper.key: paper for paper, _ in chosen}.values():
            rows = [(f.number, f.title, " ".join(filter(None, f.panels))) for p, f in chosen if p is paper]
            write(f"{paper.key}: {paper.cite}\n" + text_table(("figure", "shows", "panels"), rows, width()) + "\n")
        return
    with progress() as bar:
        shown = bar.add_task("Measuring", total=None)
        report = make_report(
            chosen, out, jobs=jobs, seed=seed, quick=quick, checkins=checkins or "",
            progress=lambda done, total: bar.update(shown, completed=done, total=total),
        )  # fmt: skip
    made = show_count(len(chosen), "figure")
    if report.claims:
        write(text_table(("paper", "claims", *report.verdicts), report.counts(), width()))
        made += ", claims.md and claims.json"
    note(f"{made} in {out}" + (" (quick: few trials)" if quick else ""))


COMMANDS = {"papers": papers}
