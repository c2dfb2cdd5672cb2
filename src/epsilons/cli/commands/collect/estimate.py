"""`epsilons collect estimate`: from a spreadsheet of answers to numbers with intervals and leakage."""

from __future__ import annotations

import click

from epsilons.cli.maps import draw_map
from epsilons.cli.terminal import as_json, notes, print_json, results
from epsilons.errors import PlanError

_LINES_NAMED = 20


@click.command()
@click.argument("answers", type=click.Path(dir_okay=False))
@click.option("--protocol", "file", required=True, type=click.Path(dir_okay=False), help="The protocol file.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the intervals.")
@click.option(
    "--assume",
    type=click.Choice(["unrelated", "nothing"]),
    help="With levels: whether they say something about answers (default: unrelated).",
)
@click.option("--map", "picture", type=click.Path(dir_okay=False), help="Draw places to this file.")
@as_json
def command(answers: str, file: str, level: float, assume: str | None, picture: str | None, as_json: bool) -> None:
    """Estimate how many have each option, with intervals, and say what the collection leaked.

    A row that cannot be used is left out, counted and named by its line; it never stops the rest.

    Example:

      epsilons collect estimate answers.csv --protocol exam.toml
    """
    from epsilons.local.answers import read_answers
    from epsilons.local.survey import Survey

    survey = Survey.load(file)
    if assume is not None and not survey.levels:
        raise PlanError("There are no levels to assume anything of.", suggest="leave out --assume")
    found = read_answers(answers, survey)
    estimate = found.estimate(**({} if assume is None else {"assume": assume}))
    if picture is not None:
        draw_map(survey, estimate, picture)
    if as_json:
        bad = [{"line": line, "reason": reason} for line, reason in found.bad]
        print_json({"question": survey.question, **estimate.to_dict(level), "bad_rows": bad})
        return
    results().print(f"{survey.question}\n\n{estimate.table(level)}", markup=False, soft_wrap=True)
    if found.bad:
        _tell_bad(found.bad)


def _tell_bad(bad: tuple[tuple[int, str], ...]) -> None:
    console = notes()
    console.print(f"\n{len(bad):,} row{'s' if len(bad) > 1 else ''} left out:", markup=False)
    for line, reason in bad[:_LINES_NAMED]:
        console.print(f"  line {line}: {reason}", markup=False, soft_wrap=True)
    if len(bad) > _LINES_NAMED:
        console.print(f"  ... and {len(bad) - _LINES_NAMED:,} more (--json lists all)", markup=False)
