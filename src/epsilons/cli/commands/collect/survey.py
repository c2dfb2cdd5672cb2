"""`epsilons collect design`, `plan` and `estimate`: a survey's protocol, its size, and what came of it."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from epsilons.cli.options import apply_all
from epsilons.cli.output import as_json, note, print_json, write
from epsilons.display import show_count
from epsilons.errors import Argument, PlanError, ProtocolError

_ROWS_NAMED = 20


class _Related(click.ParamType[Any]):
    """How far levels may lie apart: a number of spreads, or a word; what is neither is refused where it is used."""

    name = "NUMBER|unrelated|nothing"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        with suppress(ValueError):
            return float(value)
        return value


ASSUME = _Related()
_PATIENCE = "Seconds in which an aggregator says nothing before it is given up."
#: How aggregators are spoken to.
speaking = apply_all(
    (
        click.option("--patience", type=float, default=60.0, show_default=True, help=_PATIENCE),
        click.option("--insecure", is_flag=True, help="Speak plain HTTP to aggregators off this machine, too."),
    )
)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--question", required=True, help="What is asked.")
@click.option("--option", "options", multiple=True, help="An option's label; repeat for several. Default: yes.")
@click.option("--none", "none", help="The label of having none of the options. Default: no, or none of these.")
@click.option("--epsilon", type=float, help="Randomized response at this epsilon, with the least error.")
@click.option("--truth", help="Randomized response: probability of the first coin.")
@click.option("--yes", help="Randomized response: probability that the second coin says yes.")
@click.option("--sampling", help="Sampling Privacy at this rate: two rounds (read what it leaks).")
@click.option("--level", "levels", multiple=True, metavar="NAME=EPSILON", help="Everyone picks a level; repeat.")
@click.option("--h3", "resolution", type=int, metavar="RESOLUTION", help="Options are H3 cells in --box.")
@click.option("--square", "miles", type=float, metavar="MILES", help="Options are squares of this width in --box.")
@click.option("--box", type=float, nargs=4, metavar="SOUTH WEST NORTH EAST", help="The region, in degrees.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@as_json
def design(file: str, force: bool, as_json: bool, **asked: Any) -> None:
    """Write a protocol file (TOML, or JSON by its ending): question, options, probabilities.

    Choose one of --epsilon, --truth with --yes, --sampling, or --level. It prints what the paper claims of the
    protocol and what it truly leaks.

    \b
    Examples:
      epsilons collect design exam.toml --question "Ever cheated in an exam?" \\
        --none no --option yes --epsilon 1
      epsilons collect design ward.toml --question "Recurrence?" \\
        --option small --option large --sampling 0.45
      epsilons collect design town.toml --question "Where are you?" \\
        --h3 7 --box 40.70 -74.02 40.80 -73.93 --epsilon 2
    """
    from epsilons.local.survey import Survey

    options, places = _options(asked)
    none = asked["none"] or ("no" if options == ("yes",) else "none of these")
    protocol, levels = _protocol(asked, len(options))
    survey = Survey(asked["question"], options, protocol, levels, none, places)
    if Path(file).exists() and not force:
        raise ProtocolError("The file is there already.", suggest="--force, or another name")
    try:
        survey.save(file)
    except OSError as error:
        raise ProtocolError(f"The file cannot be written: {error.strerror}.", suggest="another place") from None
    if as_json:
        print_json({"file": file, "id": survey.id, **survey.to_dict()})
    else:
        write(_describe(survey))
        note(f"Written to {file}. Owners: epsilons collect respond {file}")


def _options(asked: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The labels of the options, and how they lie on a map if they do."""
    options, resolution, miles, box = (asked[name] for name in ("options", "resolution", "miles", "box"))
    if resolution is None and miles is None:
        if box:
            raise PlanError("A box needs a grid.", suggest="--h3 8, or --square 0.5")
        return options or ("yes",), {}
    from epsilons.local.places import H3Grid, Region, SquareGrid

    if not box or options or (resolution is not None and miles is not None):
        what = "Places need one grid and a box, and no other options."
        raise PlanError(what, suggest="--h3 8 --box 40.7 -74 40.8 -73.9")
    center = (round((box[0] + box[2]) / 2, 6), round((box[1] + box[3]) / 2, 6))
    grid: Any = SquareGrid(center, miles) if miles is not None else H3Grid(resolution or 0)
    return Region.of(grid, box).labels, grid.to_dict()


def _protocol(asked: dict[str, Any], options: int) -> tuple[Any, dict[str, float]]:
    from epsilons.local import RandomizedResponse, SamplingPrivacy

    chosen = [name for name in ("epsilon", "truth", "sampling", "levels") if asked[name] not in (None, ())]
    if len(chosen) != 1:
        rule = "One of --epsilon, --truth (with --yes), --sampling, --level."
        raise PlanError("Not exactly one protocol is chosen.", rule=rule, suggest="--epsilon 1")
    if asked["yes"] is not None and chosen != ["truth"]:
        raise PlanError("A second coin needs a first one.", suggest="--truth 0.8 --yes 0.2")
    if chosen == ["levels"]:
        split = (text.partition("=") for text in asked["levels"])
        try:
            return None, {name.strip(): float(epsilon) for name, _, epsilon in split}
        except ValueError:
            raise PlanError("A level is not usable.", suggest=Argument("levels", {"strict": 0.1})) from None
    if chosen == ["sampling"]:
        return SamplingPrivacy(options, asked["sampling"]), {}
    return RandomizedResponse(asked["truth"], asked["yes"], epsilon=asked["epsilon"], options=options), {}


def _describe(survey: Any) -> str:
    from epsilons.local.leakage import leakage_sheet

    labels = (survey.none, *survey.options)
    lines = [survey.question, *(f"  {number}  {label}" for number, label in enumerate(labels[:_ROWS_NAMED]))]
    lines += [f"  ... {len(labels) - _ROWS_NAMED:,} more", ""] if len(labels) > _ROWS_NAMED else [""]
    if survey.protocol is not None:
        return "\n".join([*lines, str(survey.protocol)])
    leaks = ((name, survey.protocol_for(name).leakage("second-round")) for name in survey.levels)
    leakages = [replace(leakage, sees=f"an answer at level {name}") for name, leakage in leaks]
    names = ", ".join(f"{name} ({epsilon:g})" for name, epsilon in survey.levels.items())
    lines += [f"Randomized response; everyone picks a level: {names}.", "", str(leakage_sheet(leakages))]
    return "\n".join(lines)


@click.command()
@click.option("--error", type=float, required=True, help="Wanted error: of the share, or in people with --count.")
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Wanted leakage.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="How likely more may leak.")
@click.option("--options", type=int, default=1, show_default=True, help="How many options besides none.")
@click.option("--share", type=float, help="Guessed share of respondents who have an option (default 0.5).")
@click.option("--count", type=int, help="Or: the size of a group in a crowd that may grow.")
@as_json
def plan(as_json: bool, **wanted: Any) -> None:
    """Say how many respondents, and which sampling rate, a wanted error and leakage need.

    \b
    Example:
      epsilons collect plan --error 0.01 --share 0.05 --epsilon 1
    """
    from epsilons.local.planning import plan

    found = plan(**wanted)
    print_json({"rows": [_document(row) for row in found.rows]}) if as_json else write(str(found))


def _document(row: Any) -> dict[str, Any]:
    known = row.protocol is not None
    return {
        "protocol": row.protocol.to_dict() if known else None,
        "holds_for": row.judge or "all",
        "respondents": row.respondents,
        "error": row.error if known else None,
        "reached": row.reached,
        "leakage": [one.to_dict() for one in (row.both_rounds, row.counts)] if known else [],
    }


@click.command()
@click.argument("answers", type=click.Path(dir_okay=False))
@click.option("--protocol", "file", required=True, type=click.Path(dir_okay=False), help="The protocol file.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the intervals.")
@click.option("--assume", type=ASSUME, help="With levels: how many spreads their shares may lie apart (default: 0.3).")
@click.option("--map", "picture", type=click.Path(dir_okay=False), help="Draw places to this file.")
@as_json
def estimate(answers: str, file: str, level: float, assume: Any, picture: str | None, as_json: bool) -> None:
    """Estimate how many have each option, with intervals, and say what the collection leaked.

    A row that cannot be used is left out, counted and named by its line; it never stops the rest.

    \b
    Example:
      epsilons collect estimate answers.csv --protocol exam.toml
    """
    from epsilons.local.answers import read_answers
    from epsilons.local.survey import Survey

    survey = Survey.load(file)
    if assume is not None and not survey.levels:
        raise PlanError("There are no levels to assume anything of.", suggest="leave out --assume")
    found = read_answers(answers, survey)
    made = found.estimate() if assume is None else found.estimate(assume=assume)
    if picture is not None:
        draw_map(survey, made, picture)
    if as_json:
        bad = [{"line": line, "reason": reason} for line, reason in found.bad]
        print_json({"question": survey.question, **made.to_dict(level), "bad_rows": bad})
        return
    write(f"{survey.question}\n\n{made.table(level)}")
    if found.bad:
        lines = [f"\n{show_count(len(found.bad), 'row')} left out:"]
        lines += [f"  line {line}: {reason}" for line, reason in found.bad[:_ROWS_NAMED]]
        if len(found.bad) > _ROWS_NAMED:
            lines.append(f"  ... and {len(found.bad) - _ROWS_NAMED:,} more (--json lists all)")
        note("\n".join(lines))


def draw_map(survey: Any, made: Any, picture: str) -> None:
    """Draw how many owners are in each cell, to a file."""
    check_map(survey)
    from epsilons.local.places import Region, grid_from

    axes = Region.from_labels(grid_from(survey.places), survey.options).heat_map(made, title=survey.question)
    try:
        axes.figure.savefig(picture, dpi=150)  # type: ignore[union-attr]
    except (OSError, ValueError):
        raise PlanError("The map cannot be written.", suggest="a name that ends in .png, .svg or .pdf") from None
    note(f"Map in {picture}.")


def check_map(survey: Any) -> None:
    """Whether there is a map to draw."""
    if not survey.places:
        raise PlanError("The options are no places.", rule="A map needs a survey of places.", suggest="leave out --map")


COMMANDS = (design, plan, estimate)
