"""`epsilons collect send`: an owner's answer, in shares, to every aggregator."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from epsilons.cli.terminal import as_json, notes, print_json
from epsilons.errors import DataError, ProtocolError

_STATE = 1


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--answer", help="The true answer: a label or its number. Without it: one line from stdin.")
@click.option("--level", help="The level picked, where the collection has several.")
@click.option("--round", "number", type=click.IntRange(1, 2), default=1, show_default=True, help="Which round to send.")
@click.option("--state", type=click.Path(dir_okay=False), help="Where the report is kept (default: FILE.mine).")
@click.option("--patience", type=float, default=60.0, show_default=True, help="Seconds to wait for an aggregator.")
@as_json
def command(
    file: str, answer: str | None, level: str | None, number: int, state: str | None, patience: float, as_json: bool
) -> None:
    """Split one answer into shares, seal each to its aggregator, and send them.

    The report is kept in a file first; if sending fails, the same command sends the same bytes again, so that an
    answer never counts twice. The file holds sealed shares, not the answer. Sending a second report of one's own
    counts, and costs, a second time.

    Example:

      epsilons collect send exam.toml.collection.json --answer yes --level open
    """
    from epsilons.collection.reports import REASONS, STORED
    from epsilons.collection.terms import Collection
    from epsilons.collection.transport import Courier

    collection = Collection.load(file)
    kept = Path(state or f"{file}.mine")
    if number > collection.rounds:
        raise ProtocolError("This collection has one round.", suggest="leave out --round")
    if not kept.exists():
        if number > 1:
            raise ProtocolError(
                "Round one was not sent from here.", rule="Both rounds are made at once.", suggest="--round 1"
            )
        _make(collection, answer, level, kept)
    elif answer is not None:
        notes().print(f"Sending what {kept} holds; the answer given now is not used.", markup=False, soft_wrap=True)
    courier = Courier(collection, patience=patience)
    courier.send([[report] for report in _recall(kept, collection)[number - 1]])
    outcomes = [next(iter(counts)) for counts in courier.finish()]
    bad = [outcome for outcome in outcomes if outcome != STORED]
    if as_json:
        print_json({"aggregators": outcomes, "counted": not bad})
    if bad:
        raise ProtocolError(
            "An aggregator refused the report.", rule=REASONS.get(bad[0], ""), suggest="ask the collector"
        )
    if not as_json:
        click.echo(f"Stored by all {len(outcomes)} aggregators.")


def _make(collection: Any, answer: str | None, level: str | None, kept: Path) -> None:
    """Make the reports of all rounds and keep them before anything is sent."""
    from epsilons.collection.transport import OwnerClient

    said = sys.stdin.readline().strip() if answer is None else answer
    if not said:
        raise DataError("There is no answer.", suggest="--answer yes")
    reports = OwnerClient(collection).report(said, level)
    document = {
        "format": _STATE,
        "collection": collection.id.hex(),
        "id": reports[0][0][0].id.hex(),
        "level": reports[0][0][0].level,
        "sealed": [[one.sealed.hex() for (one,) in places] for places in reports],
    }
    try:
        handle = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ProtocolError(f"The report cannot be kept: {error.strerror}.", suggest="--state elsewhere") from None


def _recall(kept: Path, collection: Any) -> list[list[Any]]:
    from epsilons.collection.reports import Report

    try:
        document = json.loads(kept.read_text(encoding="ascii"))
        if document["format"] != _STATE or document["collection"] != collection.id.hex():
            raise KeyError
        return [
            [Report(bytes.fromhex(document["id"]), number, document["level"], bytes.fromhex(text)) for text in sealed]
            for number, sealed in enumerate(document["sealed"], 1)
        ]
    except (OSError, ValueError, KeyError, TypeError):
        raise ProtocolError(
            "What is kept does not belong to this collection.",
            rule="A report serves once.",
            suggest="--state elsewhere",
        ) from None
