"""Aggregators as users have them: servers in processes of their own, and the commands of owners and coordinators."""

from __future__ import annotations

import contextlib
import gc
import io
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from epsilons.cli import app

EPSILONS = (sys.executable, "-m", "epsilons")


def epsilons(*arguments: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A command, in this process: starting one takes longer than most commands. The servers are always others."""
    out, notes = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), warnings.catch_warnings(), patch.object(sys, "stdin", io.StringIO(stdin)):
        # The connections of a command end with its process.
        warnings.simplefilter("ignore", ResourceWarning)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
            status = app.main(list(arguments))
        gc.collect()
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), notes.getvalue())


def own_files(name: str) -> tuple[str, ...]:
    """The options by which an aggregator is told of its files."""
    return ("--store", f"sqlite:///{name}.store", "--key", f"{name}.key", "--token", f"{name}.token")


def start(folder: Path, name: str, *options: str) -> subprocess.Popen[str]:
    """An aggregator on a free port; its first line names it."""
    command = [*EPSILONS, "collect", "aggregator", *own_files(name), *options, "--port", "0"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@contextlib.contextmanager
def listening(folder: Path, *names: str, options: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Aggregators on free ports; their addresses."""
    started = []
    try:
        started += [start(folder, name, *options) for name in names]
        said = [process.stdout.readline().split() for process in started if process.stdout is not None]
        assert all(len(words) == 2 for words in said)
        yield [words[0] for words in said]
    finally:
        for process in started:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
