"""The frame of the command line: what it lists, where errors go, which status they end with."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest

from epsilons import errors, ledger
from epsilons.cli import app


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "epsilons", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_help_lists_every_command_with_a_summary() -> None:
    done = run("--help")
    assert done.returncode == 0
    context = click.Context(app.epsilons)
    for name in app.epsilons.list_commands(context):
        command = app.epsilons.get_command(context, name)
        assert command is not None
        listed = f"\n  {name} " in done.stdout
        assert listed != command.hidden, name


def test_every_command_has_a_help_text_with_an_example() -> None:
    context = click.Context(app.epsilons)
    for name in app.epsilons.list_commands(context):
        command = app.epsilons.get_command(context, name)
        assert command is not None
        leaves = command.commands.values() if isinstance(command, click.Group) else [command]
        for leaf in leaves:
            text = leaf.get_help(click.Context(leaf, info_name=name))
            assert "epsilons " in text.split("Usage:")[1], (name, leaf.name)
            assert "Example" in text, (name, leaf.name)
            assert [line for line in text.splitlines() if len(line) > 80] == [], (name, leaf.name)


def test_lists_of_commands_show_whole_sentences() -> None:
    context = click.Context(app.epsilons)
    below = [app.epsilons.get_command(context, name) for name in app.epsilons.list_commands(context)]
    for group in (app.epsilons, *(one for one in below if isinstance(one, click.Group))):
        text = group.get_help(click.Context(group))
        assert "..." not in text.partition("Commands:")[2], group.name
        assert max(map(len, text.splitlines())) <= 80


def test_a_line_of_an_example_that_goes_on_says_so() -> None:
    """Pasted into a shell, a line that was wrapped by the help would be two commands."""
    context = click.Context(app.epsilons)
    for name in app.epsilons.list_commands(context):
        command = app.epsilons.get_command(context, name)
        assert command is not None
        for leaf in command.commands.values() if isinstance(command, click.Group) else [command]:
            lines = leaf.get_help(click.Context(leaf, info_name=name)).partition("Example")[2].split("\n\nOptions:")[0]
            for before, line in pairwise(line for line in lines.splitlines()[1:] if line):
                begins = line.lstrip().startswith(("epsilons ", "eval ", "printf "))
                assert begins or before.endswith("\\"), (name, line)


def test_an_unknown_command_is_a_usage_error() -> None:
    done = run("nonsense")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "nonsense" in done.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.EpsilonsError, 1),
        (errors.PreferenceError, 3),
        (errors.DataError, 4),
        (errors.PlanError, 5),
        (errors.BudgetExceeded, 6),
        (errors.LedgerError, 7),
        (errors.ProtocolError, 8),
    ],
)
def test_an_error_ends_with_its_own_status_and_stays_off_stdout(
    error: type[errors.EpsilonsError], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise error("It happened.", rule="There is a rule.", suggest="something else")

    monkeypatch.setattr(app.epsilons, "main", fail)
    assert app.main([]) == status
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err == "epsilons: It happened. There is a rule. Try: something else\n"


def test_a_result_that_cannot_be_written_names_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"sqlite:///{tmp_path}/people.ledger"
    ledger.open(address).close()
    assert app.main(["ledger", "export", address, "--output", f"{tmp_path}/nowhere/journal"]) == 1
    assert capsys.readouterr().err == f"epsilons: {tmp_path}/nowhere/journal: No such file or directory\n"
