"""`epsilons collect aggregator`, `run` and `demo`: aggregators that do not trust each other, and their coordinator."""

from __future__ import annotations

import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epsilons.arguments.checks import check_related
from epsilons.cli.commands.collect.survey import ASSUME, check_map, draw_map, speaking
from epsilons.cli.listening import listening, prepare
from epsilons.cli.output import as_json, note, print_json, progress, write
from epsilons.display import show, text_table
from epsilons.errors import PlanError, ProtocolError

if TYPE_CHECKING:
    from epsilons.collection.coordinator import Coordinator
    from epsilons.collection.terms import Collection
    from epsilons.demo.collecting import CollectionResult
    from epsilons.local.estimate import Estimate

_POLL_SECONDS = 0.5
_PROMISE = "nobody loses more than their level's epsilon if at least one aggregator is honest (more: --verbose)."
_FILE = click.Path(dir_okay=False)
#: How many cells the demo lists.
_ROWS = 8


@click.command()
@click.option("--store", required=True, help='"sqlite:///one.store" or "postgresql://.../database?schema=one".')
@click.option("--key", "key_file", required=True, type=_FILE, help="Its secret key; made if missing.")
@click.option("--token", "token_file", required=True, type=_FILE, help="What the coordinator shows; made if missing.")
@click.option("--witness", metavar="WHERE", help="Who keeps the store's head: an address, or a file of this machine.")
@click.option("--adopt", is_flag=True, help="Take the store as it is, where this machine does not know its head.")
@listening(8700)
@click.option("--minimum", type=click.IntRange(10), default=10, show_default=True, help="The least batch it adds up.")
def aggregator(store: str, key_file: str, token_file: str, host: str, port: int, **given: Any) -> None:
    """Run an aggregator until interrupted. Prints its address and its public key.

    Run two or more, on machines of parties who would not collude. Each keeps its key and its store to itself; the
    token goes to the coordinator. It may be killed and started again at any time. A new store needs a new key; files
    that others on this computer can read are refused.

    So is an older copy of the store, which would answer once more: its head is kept in your state directory, or where
    --witness says. A witness (`epsilons witness`, or a PostgreSQL of others) refuses it on every machine; it is named
    at the first start, and stays.

    \b
    Example:
      epsilons collect aggregator --store sqlite:///one.store --key one.key \\
        --token one.token --port 8701
    """
    from epsilons.collection import Aggregator, Store
    from epsilons.collection.sealing import fingerprint, keep_secret
    from epsilons.service.aggregator import LOG, AggregatorApp
    from epsilons.service.serving import serve

    held = {name: given.pop(name) for name in ("minimum", "witness", "adopt")}
    https = prepare(LOG, host, "an aggregator", **given)
    made = Aggregator.begin(Store(store), key_file, **held)
    app = AggregatorApp(made, keep_secret(token_file).hex())

    def ready(url: str) -> None:
        click.echo(f"{url} {made.key}")
        note(f"Listening on {url}. Key: {fingerprint(made.key)}")

    serve(app, host, port, ready=ready, **https)


@click.command()
@click.argument("file", type=_FILE)
@click.option("--aggregator", "urls", multiple=True, required=True, metavar="URL", help="Two or more; repeat.")
@click.option("--token", "tokens", multiple=True, required=True, type=_FILE, help="Its token file; repeat.")
@click.option("--minimum", type=click.IntRange(10), default=100, show_default=True, help="A level's least batch.")
@click.option("--neighbors", type=click.Choice(["absent", "replace"]), default="absent", show_default=True)
@click.option("--collection", "terms", type=_FILE, help="Where owners' file is (default: FILE.collection.json).")
@click.option("--until", type=click.IntRange(1), help="Close a round when every aggregator has so many reports.")
@click.option("--seconds", type=float, help="Close a round after so many seconds at the latest.")
@click.option("--close", is_flag=True, help="Close every round now and publish.")
@click.option("--assume", type=ASSUME, default=0.3, show_default=True, help="How many spreads levels may lie apart.")
@click.option("--output", type=_FILE, help="Write the publication to this file (JSON).")
@click.option("--map", "picture", type=_FILE, help="Draw places to this file.")
@speaking
@click.option("--verbose", is_flag=True, help="Say all that is promised.")
@as_json
def run(file: str, urls: tuple[str, ...], tokens: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Drive a collection: make the terms known, wait for owners, close, check, add up, publish.

    The first run writes the file that owners send with. Interrupt it whenever you like; the same command goes on where
    things stand. Without --until, --seconds and --close it opens the collection and says how many reports there are.

    \b
    Example:
      epsilons collect run exam.toml --until 1000 \\
          --aggregator http://127.0.0.1:8701 --token one.token \\
          --aggregator http://127.0.0.1:8702 --token two.token
    """
    from epsilons.collection.coordinator import Coordinator
    from epsilons.collection.sealing import read_secret
    from epsilons.collection.transport import HttpAggregator
    from epsilons.local.survey import Survey

    check_related(given["assume"])  # before anything is closed, which stays so
    if given["picture"] is not None:
        check_map(Survey.load(file))
    if len(tokens) != len(urls):
        raise PlanError("Every aggregator has a token.", suggest="as many --token as --aggregator")
    how: dict[str, Any] = {"patience": given["patience"], "insecure": given["insecure"], "told": note}
    pairs = [(url, read_secret(token).hex()) for url, token in zip(urls, tokens, strict=True)]
    aggregators = [HttpAggregator(url, token=token, **how) for url, token in pairs]
    place = Path(given["terms"] or f"{file}.collection.json")
    collection = _terms(file, place, aggregators, given["minimum"], given["neighbors"])
    coordinator = Coordinator(collection, aggregators, told=note)
    coordinator.enter()
    note(f"Owners: epsilons collect send {place}")
    if given["until"] is not None or given["seconds"] is not None:
        for number in range(1, collection.rounds + 1):
            _wait(coordinator, number, given["until"], given["seconds"])
            _refuse_too_few(coordinator, number)
            coordinator.close(number)
    elif given["close"]:
        _refuse_too_few(coordinator, 1)
    elif any(state["round"] <= collection.rounds for state in coordinator.status()):
        states = coordinator.status()
        if as_json:
            print_json({"open": True, "aggregators": states})
            return
        for one, state in zip(aggregators, states, strict=True):
            counts = ", ".join(f"{count:,} at {level}" for level, count in state["reports"].items())
            write(f"{one.url}: round {state['round']}: {counts}")
        return
    publication, survey = coordinator.publish(), collection.survey
    estimate = publication.estimate(assume=given["assume"])
    document = {**publication.to_dict(), "estimate": estimate.to_dict()}
    if given["output"] is not None:
        _write_document(document, given["output"])
    if as_json:
        print_json(document)
    else:
        promise = publication.guarantee or "\n".join(publication.caveats())  # Joy's protocol promises nothing
        if publication.guarantee and not given["verbose"]:
            promise = f"{publication.guarantee.kind}: {_PROMISE}"
        write(f"{survey.question}\nCollected by {publication.label}.\n\n{estimate}\n\n{promise}")
    if given["picture"] is not None:
        draw_map(survey, estimate, given["picture"])


def _write_document(document: dict[str, Any], file: str) -> None:
    text = json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        what = f"The publication cannot be written: {error.strerror}."
        raise PlanError(what, suggest="--output elsewhere") from None


def _terms(file: str, place: Path, aggregators: list[Any], minimum: int, neighbors: str) -> Collection:
    """The collection's terms: those in the file if there are any, otherwise new ones, kept before they are used."""
    from epsilons.collection.terms import Collection, Place
    from epsilons.local.survey import Survey

    survey = Survey.load(file)
    with ThreadPoolExecutor(len(aggregators)) as pool:  # so that all that do not answer are named at once
        listed = tuple(pool.map(lambda one: Place(one.url, one.key()), aggregators))
    if not place.exists():
        Collection.start(survey, listed, neighbors=neighbors, minimum=minimum).save(place)
    found = Collection.load(place)
    if (found.survey, found.aggregators, found.neighbors, found.minimum) != (survey, listed, neighbors, minimum):
        rule = "A collection's terms never change."
        raise ProtocolError(f"{place} has other terms.", rule=rule, suggest="--collection with a new name")
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
            rule, hint = f"At least {minimum} reports of a level.", "more owners, then the same command"
            raise ProtocolError("No level has its minimum yet; the round stays open.", rule=rule, suggest=hint)


@click.command()
@click.option("--owners", type=click.IntRange(1_000, 10_000_000), default=100_000, show_default=True)
@click.option("--map", "picture", type=_FILE, help="Draw the estimate to this file, too.")
@as_json
def demo(owners: int, picture: str | None, as_json: bool) -> None:
    """Start three aggregators, send made-up owners' shares, kill and restart one of them midway, publish.

    Everything is real but the owners: processes, keys, HTTP, disks, noise. True numbers stand beside the estimates,
    which only a demo can show.

    \b
    Example:
      epsilons collect demo --owners 2000
    """
    from epsilons.demo.collecting import run_collection

    with tempfile.TemporaryDirectory(prefix="epsilons-demo-") as folder, progress() as bar:
        task = bar.add_task("owners", total=owners)
        told = run_collection(Path(folder), owners, lambda done: bar.update(task, completed=done), note)
    estimate = told.publication.estimate()
    if picture is not None:
        draw_map(told.publication.collection.survey, estimate, picture)
    print_json(_facts(told, estimate)) if as_json else write(_page(told, estimate))


def _facts(told: CollectionResult, estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval()
    return {
        "owners": told.owners,
        "acknowledged": told.acknowledged,
        "counted": sum(batch.reports for batch in told.publication.batches),
        "sending_seconds": round(told.sending_seconds, 2),
        "publishing_seconds": round(told.publishing_seconds, 2),
        "cells": len(told.truth),
        "predicted_error": float(estimate.errors.mean()),
        "true_error": float(((estimate.values - told.truth) ** 2).mean() ** 0.5),
        "covered": int(((low <= told.truth) & (told.truth <= high)).sum()),
        "truth": told.truth.tolist(),
        "publication": told.publication.to_dict(),
        "estimate": estimate.to_dict(),
    }


def _page(told: CollectionResult, estimate: Estimate) -> str:
    from epsilons.demo.collecting import LEVELS, shade_map

    facts = _facts(told, estimate)
    low, high = estimate.interval()
    shown = [[show(round(float(number), 1)) for number in numbers] for numbers in (estimate.values, low, high)]
    rows = [
        (estimate.labels[cell], f"{told.truth[cell]:,}", shown[0][cell], f"{shown[1][cell]} to {shown[2][cell]}")
        for cell in told.truth.argsort()[::-1][:_ROWS].tolist()
    ]
    most = float(told.truth.max()) * 1.001
    pair = zip(shade_map(told.truth, most), shade_map(estimate.values, most), strict=True)
    width = 2 * round(len(told.truth) ** 0.5)
    levels = ", ".join(f"{one.reports:,} at {one.level} ({LEVELS[one.level]:g})" for one in told.publication.batches)
    lines = [
        told.publication.collection.survey.question,
        f"{facts['counted']:,} owners counted of {told.owners:,} sent: {levels}.",
        f"Sent in {told.sending_seconds:.1f} s, published in {told.publishing_seconds:.1f} s.",
        "",
        text_table(("cell", "truth", "estimate", "0.95 interval"), rows),
        f"... and {len(told.truth) - _ROWS} more; {facts['covered']} of {len(told.truth)} intervals hold the truth.",
        f"Error: {facts['true_error']:.1f} owners a cell; predicted: {facts['predicted_error']:.1f}.",
        "",
        f"{'the truth':<{width}}    as estimated",
        *(f"{one}    {two}" for one, two in pair),
        "",
        str(told.publication.guarantee),
    ]
    return "\n".join(lines)


COMMANDS = (aggregator, run, demo)
