"""The frame of the command line: what it lists, where errors go, which status they end with."""

import subprocess
import sys

import click
import pytest

from epsilons import errors
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
