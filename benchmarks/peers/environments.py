"""An environment for each peer, with exactly the packages that the head of its script lists."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path


class NoEnvironmentError(Exception):
    """The environment could not be made; the words say where to read why."""


def pins_of(script: Path) -> list[str]:
    """The dependencies in the head of a script (inline script metadata), all of them exact."""
    head = re.search(r"^# /// script\n((?:#.*\n)*?)# ///$", script.read_text(encoding="utf-8"), re.MULTILINE)
    if head is None:
        return []
    lines = [line.removeprefix("#").removeprefix(" ") for line in head[1].splitlines()]
    pins: list[str] = tomllib.loads("\n".join(lines))["dependencies"]
    return pins


def version_of(script: Path) -> str:
    """The peer's own version: its script lists it first."""
    return pins_of(script)[0].partition("==")[2]


def python_of(script: Path, cache: Path, log: Path) -> Path:
    """The Python of the script's environment, which is made first unless it is there with these very pins."""
    home = cache / "environments" / script.stem
    python, ready, pins = home / "bin" / "python", home / ".ready", pins_of(script)
    if ready.exists() and ready.read_text(encoding="utf-8").splitlines() == pins:
        return python
    with log.open("w", encoding="utf-8") as out:
        # Every package is listed, so there is nothing left for pip to choose.
        install = [str(python), "-m", "pip", "install", "--no-input", "--no-deps", *pins]
        for command in ([sys.executable, "-m", "venv", "--clear", str(home)], install):
            if subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, check=False).returncode:
                raise NoEnvironmentError(f"its environment could not be made; {log.name} in {log.parent.name} says why")
    # Written last, so that an interrupted set-up is done again.
    ready.write_text("\n".join(pins), encoding="utf-8")
    return python
