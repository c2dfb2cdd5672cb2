"""`epsilons collect respond` and `send`: on the owner's side, an answer is randomized, or sent in shares."""

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from epsilons.arguments.checks import check_whole
from epsilons.cli.commands.collect.survey import speaking
from epsilons.cli.output import as_json, note, print_json
from epsilons.errors import DataError, ProtocolError
from epsilons.storage.files import write_private

_STATE = 1
#: How many labels are shown, and from which epsilon on a factor is not written out.
_LABELS, _NAMED_FACTOR = 20, 20.0
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

    \b
    Examples:
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
@click.option("--level", help="The level picked, where the collection has several.")
@click.option("--yes", is_flag=True, help="Agree to what is shown, without being asked.")
@click.option("--name", help="Who sends, where several people use this computer: each has a file of their own.")
@click.option("--again", is_flag=True, help="Send the same bytes once more, after sending failed.")
@click.option("--round", "number", type=click.IntRange(1, 2), default=1, show_default=True, help="Which round to send.")
@click.option("--state", type=_PATH, help="Where the report is kept (default: FILE.mine, FILE.NAME.mine).")
@speaking
@as_json
def send(file: str, level: str | None, number: int, as_json: bool, **given: Any) -> None:
    """Show what is asked, at which epsilon and by whom; then split the answer into shares, seal and send them.

    The answer is typed when asked for, or is one line of stdin, and then --yes says that the terms are agreed to. It is
    no option, since others on the computer can list commands. The report is kept in a file before it is sent; --again
    sends the same bytes, so that an answer never counts twice. The file holds sealed shares, not the answer. Sending a
    second report of one's own counts, and costs, a second time.

    \b
    Examples:
      epsilons collect send exam.toml.collection.json --level open
      epsilons collect send exam.toml.collection.json --level open --name ann
    """
    from epsilons.collection.reports import REASONS, STORED
    from epsilons.collection.terms import Collection
    from epsilons.collection.transport import Courier, HttpAggregator

    collection = Collection.load(file)
    kept = given["state"] or _own_file(file, given["name"])
    if number > collection.rounds:
        raise ProtocolError("This collection has one round.", suggest="leave out --round")
    for place in collection.aggregators:  # refused before anybody is asked for an answer
        HttpAggregator(place.url, patience=given["patience"], insecure=given["insecure"])
    if number > 1 or given["again"]:
        if not kept.exists():
            rule = "All rounds are made at once, and kept."
            raise ProtocolError(f"Nothing was sent from here: there is no {kept}.", rule=rule, suggest="round 1 first")
    elif kept.exists():
        rule = "One person answers once, and each has a file of their own."
        hint = "--again, which sends the same bytes; or --name, if somebody else sent before"
        raise ProtocolError(f"{kept} holds a report that was made before.", rule=rule, suggest=hint)
    else:
        _make_reports(collection, kept, *_ask_owner(collection, level, given["yes"]))
    courier = Courier(collection, patience=given["patience"], insecure=given["insecure"], told=note)
    courier.send([[report] for report in _recall(kept, _read_reports, collection=collection.id.hex())[number - 1]])
    try:
        outcomes = [next(iter(counts)) for counts in courier.finish()]
    except ProtocolError:
        note(f"The report is kept in {kept}: the same command with --again sends the same bytes.")
        raise
    bad = [(place.url, outcome) for place, outcome in zip(collection.aggregators, outcomes, strict=True)
           if outcome != STORED]  # fmt: skip
    if as_json:
        print_json({"aggregators": outcomes, "counted": not bad})
    if bad:
        url, outcome = bad[0]
        what, rule = f"The aggregator at {url} refused the report.", REASONS.get(outcome, "")
        raise ProtocolError(what, rule=rule, suggest="ask the collector")
    if not as_json:
        click.echo(f"Stored by all {len(outcomes)} aggregators.")


def _own_file(file: str, name: str | None) -> Path:
    if name is not None and not re.fullmatch(r"\w[\w.-]{0,40}", name):
        raise ProtocolError("This name cannot be part of a file's.", rule="Letters and digits.", suggest="--name ann")
    return Path(f"{file}.mine" if name is None else f"{file}.{name}.mine")


def _ask_owner(collection: Any, level: str | None, agreed: bool) -> tuple[str, str | None]:
    """The answer and the level, from somebody who has seen the terms and agreed to them."""
    terminal = sys.stdin.isatty()
    several = [name for name, _ in collection.levels]
    if level is None and terminal and len(several) > 1:
        note(_one_line(collection.survey.question))
        level = click.prompt("Your level", type=click.Choice(several), err=True)
    note(show_terms(collection, collection.level(level)))
    if not terminal and not agreed:
        rule = "An owner agrees to what is shown before anything is sent."
        raise ProtocolError("Nobody has agreed to these terms.", rule=rule, suggest="--yes")
    asked = "Your answer (a label or its number)"
    answer = click.prompt(asked, err=True) if terminal else sys.stdin.readline().strip()
    if not answer:
        raise DataError("There is no answer.", rule="One line of stdin, or typed when asked for.")
    if not agreed and not click.confirm("Send it on these terms?", err=True):
        raise ProtocolError("Nothing was sent, and nothing is kept.")
    return answer, level


def show_terms(collection: Any, number: int) -> str:
    """What an owner agrees to: the question, their epsilon, who adds up, what each of them learns."""
    from epsilons.collection.publication import PAPER_CAVEATS
    from epsilons.collection.sealing import fingerprint
    from epsilons.guarantee import to_epsilon

    survey, (level, nano) = collection.survey, collection.levels[number]
    labels = [survey.none, *survey.options]
    lines = [_one_line(survey.question), *(f"  {place}  {label}" for place, label in enumerate(labels[:_LABELS]))]
    lines += [f"  ... and {len(labels) - _LABELS:,} more"] if len(labels) > _LABELS else []
    if nano is None:
        lines += ["", "No epsilon protects this answer.", *PAPER_CAVEATS]
    else:
        epsilon = to_epsilon(nano)
        lines += [
            "",
            f"Your level: {level}, epsilon {epsilon:g}. If one aggregator is honest, what is published changes",
        ]
        if collection.neighbors == "absent":
            lines[-1] += f' the odds between your answer and "{survey.none}" by at most a factor of {_factor(epsilon)},'
            lines[-1] += f" and between two other answers by {_factor(2 * epsilon)}."
        else:
            lines[-1] += f" the odds between your answer and any other by at most a factor of {_factor(epsilon)}."
    lines += ["", "Who adds up, by address and key:"]
    lines += [f"  {place.url}  {fingerprint(place.key)}" for place in collection.aggregators]
    lines.append(
        "Each of them gets a share, which is random numbers and says nothing about your answer, and learns that a "
        "report came, when, from which address, and its level. All of them together can read your answer. Published: "
        f"sums of at least {collection.minimum:,} reports of a level."
    )
    return "\n".join(lines)


def _one_line(question: str) -> str:
    """Whoever writes the question cannot write what looks like lines of the terms."""
    return " ".join(question.split())


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < _NAMED_FACTOR else f"e^{epsilon:g}"


def _make_reports(collection: Any, kept: Path, answer: str, level: str | None) -> None:
    """Make the reports of all rounds and keep them before anything is sent."""
    from epsilons.collection.transport import OwnerClient

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
