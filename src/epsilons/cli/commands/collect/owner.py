"""`epsilons collect respond` and `send`: on the owner's side, an answer is randomized, or sent in shares."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from epsilons.arguments.checks import check_whole
from epsilons.cli.output import as_json, note, print_json
from epsilons.errors import DataError, ProtocolError
from epsilons.storage.files import write_private

_STATE = 1
_T = TypeVar("_T")
_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--answer", help="The true answer: a label or its number. Without it: one per line from stdin.")
@click.option("--level", help="The level picked, where the survey has levels.")
@click.option("--round", "number", type=click.IntRange(1, 2), help="Print this round's output only; needs --state.")
@click.option("--state", type=_PATH, help="Where round one keeps what round two sends.")
@click.option("--header", is_flag=True, help="Print the columns' names first.")
def respond(file: str, answer: str | None, level: str | None, number: int | None, state: Any, header: bool) -> None:
    """Randomize one answer, on the owner's side, and print what may be sent: a row for answers.csv.

    The true answer goes nowhere. Respond once: every further response to the same question leaks again. On shared
    machines rather pipe the answer in than write it into a command that others may list.

    Examples:

    \b
      epsilons collect respond exam.toml --answer yes >> answers.csv
      printf 'yes\\nno\\n' | epsilons collect respond exam.toml
      epsilons collect respond ward.toml --answer small --round 1 --state mine
      epsilons collect respond ward.toml --round 2 --state mine
    """
    from epsilons.local.answers import columns_of
    from epsilons.local.survey import Survey

    survey = Survey.load(file)
    if (number is None) != (state is None):
        raise ProtocolError("One round alone needs a place for the other.", suggest="--round 1 --state mine.json")
    if number is not None and survey.rounds < 2:
        raise ProtocolError("This protocol has one round.", suggest="leave out --round and --state")
    if header and number is not None:
        raise ProtocolError("One round's output is no row of a file.", suggest="leave out --header")
    if number == 2:
        click.echo(_recall(state, lambda document: check_whole(document["second"], 0), survey=survey.id))
        return
    answers = [answer] if answer is not None else [line for line in sys.stdin.read().splitlines() if line.strip()]
    if not answers:
        raise DataError("There is no answer.", suggest="--answer yes")
    if number == 1:
        if len(answers) != 1:
            raise DataError("A state belongs to one owner.", suggest="one answer")
        first, second = survey.respond(answers[0], level)
        # Kept before anything is printed, so that nobody sends round one without being able to send round two.
        _keep(state, {"format": _STATE, "survey": survey.id, "second": second})
        click.echo(first)
        return
    # A level's name as a cell of a CSV file, whatever separates its cells.
    name = '"' + level.replace('"', '""') + '"' if level and set(level) & set(',;"\t') else level
    cells = [] if name is None else [name]
    rows = [",".join(map(str, [*outputs, *cells])) for outputs in survey.respond_all(answers, level)]
    click.echo("\n".join([columns_of(survey), *rows] if header else rows))


def _keep(place: Path, document: dict[str, Any]) -> None:
    """Write a file that only its owner can read, durably; never a second time, since a second response leaks again."""
    try:
        write_private(place, json.dumps(document))
    except FileExistsError:
        hint = "--round 2 with the same state"
        raise ProtocolError("Round one was answered already.", rule="An owner responds once.", suggest=hint) from None
    except OSError as error:
        raise ProtocolError(f"The state cannot be kept: {error.strerror}.", suggest="--state elsewhere") from None


def _recall(place: Path, read: Callable[[dict[str, Any]], _T], **belongs: str) -> _T:
    """What was kept, if it belongs to this survey or collection."""
    try:
        document = json.loads(place.read_text(encoding="utf-8"))
        if all(document[name] == value for name, value in {"format": _STATE, **belongs}.items()):
            return read(document)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    what, rule = f"What {place} holds does not belong here.", f"Round one writes it, for one {next(iter(belongs))}."
    raise ProtocolError(what, rule=rule, suggest="--round 1 first, or --state elsewhere")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--answer", help="The true answer: a label or its number. Without it: one line from stdin.")
@click.option("--level", help="The level picked, where the collection has several.")
@click.option("--round", "number", type=click.IntRange(1, 2), default=1, show_default=True, help="Which round to send.")
@click.option("--state", type=_PATH, help="Where the report is kept (default: FILE.mine).")
@click.option("--patience", type=float, default=60.0, show_default=True, help="Seconds to wait for an aggregator.")
@as_json
def send(file: str, number: int, state: Path | None, patience: float, as_json: bool, **said: str | None) -> None:
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
    kept = state or Path(f"{file}.mine")
    if number > collection.rounds:
        raise ProtocolError("This collection has one round.", suggest="leave out --round")
    if not kept.exists():
        if number > 1:
            rule = "Both rounds are made at once."
            raise ProtocolError("Round one was not sent from here.", rule=rule, suggest="--round 1")
        _make_reports(collection, kept, **said)
    elif said["answer"] is not None:
        note(f"Sending what {kept} holds; the answer given now is not used.")
    courier = Courier(collection, patience=patience)
    courier.send([[report] for report in _recall(kept, _read_reports, collection=collection.id.hex())[number - 1]])
    outcomes = [next(iter(counts)) for counts in courier.finish()]
    bad = [outcome for outcome in outcomes if outcome != STORED]
    if as_json:
        print_json({"aggregators": outcomes, "counted": not bad})
    if bad:
        rule = REASONS.get(bad[0], "")
        raise ProtocolError("An aggregator refused the report.", rule=rule, suggest="ask the collector")
    if not as_json:
        click.echo(f"Stored by all {len(outcomes)} aggregators.")


def _make_reports(collection: Any, kept: Path, answer: str | None, level: str | None) -> None:
    """Make the reports of all rounds and keep them before anything is sent."""
    from epsilons.collection.transport import OwnerClient

    answer = sys.stdin.readline().strip() if answer is None else answer
    if not answer:
        raise DataError("There is no answer.", suggest="--answer yes")
    reports = OwnerClient(collection).report(answer, level)
    first = reports[0][0][0]
    sealed = [[one.sealed.hex() for (one,) in places] for places in reports]
    made = {"format": _STATE, "collection": collection.id.hex(), "id": first.id.hex(), "level": first.level}
    _keep(kept, {**made, "sealed": sealed})


def _read_reports(document: dict[str, Any]) -> list[list[Any]]:
    from epsilons.collection.reports import Report

    return [
        [Report(bytes.fromhex(document["id"]), number, document["level"], bytes.fromhex(text)) for text in sealed]
        for number, sealed in enumerate(document["sealed"], 1)
    ]


COMMANDS = (respond, send)
