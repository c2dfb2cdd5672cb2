"""`epsilons collect respond`: randomize answers on the owner's side."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from epsilons.errors import DataError, ProtocolError

_STATE = 1


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--answer", help="The true answer: a label or its number. Without it: one per line from stdin.")
@click.option("--level", help="The level picked, where the survey has levels.")
@click.option("--round", "number", type=click.IntRange(1, 2), help="Print this round's output only; needs --state.")
@click.option("--state", type=click.Path(dir_okay=False), help="Where round one keeps what round two sends.")
@click.option("--header", is_flag=True, help="Print the columns' names first.")
def command(
    file: str, answer: str | None, level: str | None, number: int | None, state: str | None, header: bool
) -> None:
    """Randomize one answer, on the owner's side, and print what may be sent: a row for answers.csv.

    The true answer goes nowhere. Respond once: every further response to the same question leaks again. On shared
    machines rather pipe the answer in than write it into a command that others may list.

    Examples:

    \b
      epsilons collect respond exam.toml --answer yes >> answers.csv
      printf 'yes\\nno\\n' | epsilons collect respond exam.toml
      epsilons collect respond ward.toml --round 1 --state mine.json --answer small
      epsilons collect respond ward.toml --round 2 --state mine.json
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
    if number == 2 and state is not None:
        click.echo(_recall(state, survey.id))
        return
    answers = [answer] if answer is not None else [line for line in sys.stdin.read().splitlines() if line.strip()]
    if not answers:
        raise DataError("There is no answer.", suggest="--answer yes")
    if number == 1 and state is not None:
        if len(answers) != 1:
            raise DataError("A state belongs to one owner.", suggest="one answer")
        first, second = survey.respond(answers[0], level)
        # Kept before anything is printed, so that nobody sends round one without being able to send round two.
        _keep(state, {"format": _STATE, "survey": survey.id, "second": second})
        click.echo(first)
        return
    end = "" if level is None else "," + _cell(level)
    rows = [",".join(map(str, outputs)) + end for outputs in survey.respond_all(answers, level)]
    click.echo("\n".join([columns_of(survey), *rows] if header else rows))


def _cell(text: str) -> str:
    """A level's name as a cell of a CSV file."""
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',;"\t') else text


def _keep(path: str, document: dict[str, Any]) -> None:
    """Write a file that only its owner can read; never a second time, since a second response leaks again."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file)
    except FileExistsError:
        raise ProtocolError(
            "Round one was answered already.", rule="An owner responds once.", suggest="--round 2 with the same state"
        ) from None
    except OSError as error:
        raise ProtocolError(f"The state cannot be written: {error.strerror}.", suggest="another place") from None


def _recall(path: str, survey: str) -> int:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        fits = document["format"] == _STATE and document["survey"] == survey
        second = document["second"]
    except (OSError, ValueError, KeyError, TypeError):
        fits, second = False, None
    if not fits or isinstance(second, bool) or not isinstance(second, int):
        raise ProtocolError(
            "This state does not belong to the survey.", rule="Round one writes it.", suggest="--round 1 first"
        )
    return second
