"""`epsilons collect design`: write the protocol file that collector and owners share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from epsilons.cli.terminal import as_json, notes, print_json, results
from epsilons.errors import PlanError, ProtocolError


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--question", required=True, help="What is asked.")
@click.option("--option", "options", multiple=True, help="An option's label; repeat for several. Default: yes.")
@click.option("--none", "none", help="The label of having none of the options. Default: no, or none of these.")
@click.option("--epsilon", type=float, help="Randomized response at this epsilon, with the least error.")
@click.option("--truth", help="Randomized response: probability of the first coin.")
@click.option("--yes", help="Randomized response: probability that the second coin says yes.")
@click.option("--sampling", help="Sampling Privacy at this rate: two rounds (read what it leaks).")
@click.option("--level", "levels", multiple=True, metavar="NAME=EPSILON", help="Everybody picks a level; repeat.")
@click.option("--h3", type=int, metavar="RESOLUTION", help="Options are H3 cells in --box.")
@click.option("--square", type=float, metavar="MILES", help="Options are squares of this width in --box.")
@click.option("--box", type=float, nargs=4, metavar="SOUTH WEST NORTH EAST", help="The region, in degrees.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@as_json
def command(file: str, force: bool, as_json: bool, **asked: Any) -> None:
    """Write a protocol file (TOML, or JSON by its ending): question, options, probabilities.

    Choose one of --epsilon, --truth with --yes, --sampling, or --level. It prints what the paper claims of the
    protocol and what it truly leaks.

    Examples:

    \b
      epsilons collect design exam.toml --question "Ever cheated in an exam?" --none no --option yes --epsilon 1
      epsilons collect design ward.toml --question "Recurrence?" --option small --option large --sampling 0.45
      epsilons collect design town.toml --question "Where are you?" --h3 7 --box 40.70 -74.02 40.80 -73.93 --epsilon 2
    """
    from epsilons.local.survey import Survey

    options, places = _options(asked)
    none = asked["none"] or ("no" if options == ("yes",) else "none of these")
    protocol, levels = _protocol(asked, len(options))
    survey = Survey(asked["question"], options, protocol, levels, none, places)
    if Path(file).exists() and not force:
        raise ProtocolError(
            "The file is there already.", rule="It is not overwritten.", suggest="--force, or another name"
        )
    try:
        survey.save(file)
    except OSError as error:
        raise ProtocolError(f"The file cannot be written: {error.strerror}.", suggest="another place") from None
    if as_json:
        print_json({"file": file, "id": survey.id, **survey.to_dict()})
        return
    results().print(_told(survey), markup=False, soft_wrap=True)
    notes().print(f"Written to {file}. Owners: epsilons collect respond {file}", markup=False, soft_wrap=True)


def _options(asked: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The labels of the options, and how they lie on a map if they do."""
    if asked["h3"] is None and asked["square"] is None:
        if asked["box"]:
            raise PlanError("A box needs a grid.", suggest="--h3 8, or --square 0.5")
        return asked["options"] or ("yes",), {}
    from epsilons.local.places import Grid, H3Grid, Region, SquareGrid

    if not asked["box"] or asked["options"] or (asked["h3"] is not None and asked["square"] is not None):
        raise PlanError(
            "Places need one grid and a box, and no other options.", suggest="--h3 8 --box 40.7 -74 40.8 -73.9"
        )
    south, west, north, east = asked["box"]
    grid: Grid
    if asked["h3"] is not None:
        grid = H3Grid(asked["h3"])
    else:
        grid = SquareGrid((round((south + north) / 2, 6), round((west + east) / 2, 6)), asked["square"])
    return Region.of(grid, (south, west, north, east)).labels, grid.to_dict()


def _protocol(asked: dict[str, Any], options: int) -> tuple[Any, dict[str, float]]:
    from epsilons.local import RandomizedResponse, SamplingPrivacy

    ways = [name for name in ("epsilon", "truth", "sampling", "levels") if asked[name] not in (None, ())]
    if len(ways) != 1:
        raise PlanError(
            "The protocol is not chosen." if not ways else "More than one protocol is chosen.",
            rule="One of --epsilon, --truth (with --yes), --sampling, --level.",
            suggest="--epsilon 1",
        )
    if asked["yes"] is not None and ways != ["truth"]:
        raise PlanError("A second coin needs a first one.", suggest="--truth 0.8 --yes 0.2")
    if ways == ["epsilon"]:
        return RandomizedResponse(epsilon=asked["epsilon"], options=options), {}
    if ways == ["truth"]:
        return RandomizedResponse(asked["truth"], asked["yes"], options=options), {}
    if ways == ["sampling"]:
        return SamplingPrivacy(options, asked["sampling"]), {}
    return None, dict(_level(text) for text in asked["levels"])


def _level(text: str) -> tuple[str, float]:
    name, _, epsilon = text.partition("=")
    try:
        return name.strip(), float(epsilon)
    except ValueError:
        raise PlanError("A level is not usable.", rule="NAME=EPSILON.", suggest="--level strict=0.1") from None


def _told(survey: Any) -> str:
    """The question, the options and what each way of answering gives away."""
    from epsilons.local.leakage import leakage_table

    labels = (survey.none, *survey.options)
    listed = [f"  {number}  {label}" for number, label in list(enumerate(labels))[:20]]
    if len(labels) > 20:
        listed.append(f"  ... {len(labels) - 20:,} more")
    lines = [survey.question, *listed, ""]
    if survey.protocol is not None:
        return "\n".join([*lines, str(survey.protocol)])
    rows = [
        replace(survey.protocol_for(name).leakage("second-round"), sees=f"an answer at level {name}")
        for name in survey.levels
    ]
    names = ", ".join(f"{name} ({epsilon:g})" for name, epsilon in survey.levels.items())
    return "\n".join([*lines, f"Randomized response; everybody picks a level: {names}.", "", leakage_table(rows)])
