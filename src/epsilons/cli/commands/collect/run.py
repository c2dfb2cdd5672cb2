"""`epsilons collect run`: the coordinator. From a protocol file and aggregators to a publication."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.maps import draw_map
from epsilons.cli.terminal import as_json, notes, print_json, progress, results
from epsilons.errors import PlanError, ProtocolError

if TYPE_CHECKING:
    from epsilons.collection.coordinator import Coordinator
    from epsilons.collection.publication import Publication
    from epsilons.collection.terms import Collection

_POLL_SECONDS = 0.5


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--aggregator", "urls", multiple=True, required=True, metavar="URL", help="Two or more; repeat.")
@click.option(
    "--token",
    "tokens",
    multiple=True,
    required=True,
    type=click.Path(dir_okay=False),
    help="The aggregator's token file; repeat.",
)
@click.option(
    "--minimum", type=click.IntRange(10), default=100, show_default=True, help="The smallest batch of a level."
)
@click.option("--neighbors", type=click.Choice(["absent", "replace"]), default="absent", show_default=True)
@click.option(
    "--collection",
    "terms",
    type=click.Path(dir_okay=False),
    help="Where owners' file is (default: FILE.collection.json).",
)
@click.option("--until", type=click.IntRange(1), help="Close a round when every aggregator has so many reports.")
@click.option("--seconds", type=float, help="Close a round after so many seconds at the latest.")
@click.option("--close", is_flag=True, help="Close every round now and publish.")
@click.option(
    "--assume",
    type=click.Choice(["unrelated", "nothing"]),
    default="unrelated",
    show_default=True,
    help="How levels are combined.",
)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the publication to this file (JSON).")
@click.option("--map", "picture", type=click.Path(dir_okay=False), help="Draw places to this file.")
@as_json
def command(
    file: str,
    urls: tuple[str, ...],
    tokens: tuple[str, ...],
    minimum: int,
    neighbors: str,
    terms: str | None,
    until: int | None,
    seconds: float | None,
    close: bool,
    assume: str,
    output: str | None,
    picture: str | None,
    as_json: bool,
) -> None:
    """Drive a collection: make the terms known, wait for owners, close, check, add up, publish.

    The first run writes the file that owners send with. Interrupt it whenever you like; the same command goes on where
    things stand. Without --until, --seconds and --close it opens the collection and says how many reports there are.

    Example:

    \b
      epsilons collect run exam.toml --until 1000 \\
          --aggregator http://127.0.0.1:8701 --token one.token \\
          --aggregator http://127.0.0.1:8702 --token two.token
    """
    from epsilons.collection.coordinator import Coordinator
    from epsilons.collection.sealing import read_secret
    from epsilons.collection.transport import HttpAggregator

    if len(tokens) != len(urls):
        raise PlanError(
            "Every aggregator has a token.", rule="As many --token as --aggregator.", suggest="--token one.token"
        )
    aggregators = [HttpAggregator(url, token=read_secret(token).hex()) for url, token in zip(urls, tokens, strict=True)]
    place = Path(terms or f"{file}.collection.json")
    collection = _terms(file, place, aggregators, minimum, neighbors)
    told = notes()
    coordinator = Coordinator(collection, aggregators, told=lambda what: told.print(what, markup=False))
    coordinator.enter()
    told.print(f"Owners: epsilons collect send {place}", markup=False, soft_wrap=True)
    if until is not None or seconds is not None:
        for number in range(1, collection.rounds + 1):
            _wait(coordinator, number, until, seconds)
            _refuse_too_few(coordinator, number)
            coordinator.close(number)
    elif not close and any(state["round"] <= collection.rounds for state in coordinator.status()):
        _say_status(coordinator, as_json)
        return
    elif close:
        _refuse_too_few(coordinator, 1)
    publication = coordinator.publish()
    if output is not None:
        _write(output, publication)
    _show(publication, assume, picture, as_json)


def _terms(file: str, place: Path, aggregators: list[Any], minimum: int, neighbors: str) -> Collection:
    """The collection's terms: those in the file if there are any, otherwise new ones, kept before they are used."""
    from epsilons.collection.terms import Collection, Place
    from epsilons.local.survey import Survey

    survey = Survey.load(file)
    listed = tuple(Place(aggregator.url, aggregator.key()) for aggregator in aggregators)
    if not place.exists():
        Collection.start(survey, listed, neighbors=neighbors, minimum=minimum).save(place)
    found = Collection.load(place)
    if (found.survey, found.aggregators, found.neighbors, found.minimum) != (survey, listed, neighbors, minimum):
        raise ProtocolError(
            f"{place} has other terms.",
            rule="A collection's terms never change.",
            suggest="--collection with a new name",
        )
    return found


def _wait(coordinator: Coordinator, number: int, until: int | None, seconds: float | None) -> None:
    """Until every aggregator has enough reports of a round, or the time is over, or the round is closed already."""
    give_up = None if seconds is None else time.monotonic() + seconds
    with progress() as bar:
        task = bar.add_task(f"round {number}", total=until)
        while True:
            states = coordinator.status()
            if any(state["round"] > number for state in states):
                return
            least = min(sum(state["reports"].values()) for state in states)
            bar.update(task, completed=least, description=f"round {number}: {least:,} reports")
            if (until is not None and least >= until) or (give_up is not None and time.monotonic() > give_up):
                return
            time.sleep(_POLL_SECONDS)


def _refuse_too_few(coordinator: Coordinator, number: int) -> None:
    """A round that is closed stays closed, so it is not closed while no level has its minimum."""
    minimum = coordinator.collection.minimum
    for state in coordinator.status():
        if state["round"] <= number and max(state["reports"].values()) < minimum:
            raise ProtocolError(
                "No level has its minimum yet; the round stays open.",
                rule=f"At least {minimum} reports of a level; a closed round cannot be opened again.",
                suggest="more owners, then the same command",
            )


def _say_status(coordinator: Coordinator, as_json: bool) -> None:
    states = coordinator.status()
    if as_json:
        print_json({"open": True, "aggregators": states})
        return
    for place, state in zip(coordinator.collection.aggregators, states, strict=True):
        counts = ", ".join(f"{count:,} at {level}" for level, count in state["reports"].items())
        results().print(f"{place.url}: round {state['round']}: {counts}", markup=False, soft_wrap=True)


def _write(output: str, publication: Publication) -> None:
    try:
        Path(output).write_text(publication.to_json(), encoding="utf-8")
    except OSError as error:
        raise PlanError(f"The publication cannot be written: {error.strerror}.", suggest="--output elsewhere") from None


def _show(publication: Publication, assume: str, picture: str | None, as_json: bool) -> None:
    estimate = publication.estimate(assume=assume)
    survey = publication.collection.survey
    if picture is not None:
        draw_map(survey, estimate, picture)
    if as_json:
        print_json({**publication.to_dict(), "estimate": estimate.to_dict()})
        return
    promise = publication.guarantee or "\n".join(publication.caveats())
    text = f"{survey.question}\nCollected by {publication.label}.\n\n{estimate}\n\n{promise}"
    results().print(text, markup=False, soft_wrap=True)
