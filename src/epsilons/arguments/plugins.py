"""What other packages add by entry points: `epsilons.mechanisms` and `epsilons.statistics`."""

import sys
import warnings
from pathlib import Path
from typing import Any


def load_plugins(group: str) -> list[Any]:
    """What the entry points of a group name, in the order of their names; one that fails is told and left out.

    Installed packages are asked only if one of them names the group: reading all that is installed takes long.
    """
    if not any(group in _read(file) for path in sys.path for file in _files(path)):
        return []
    from importlib.metadata import entry_points

    found = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            found.append(point.load())
        except Exception as error:
            told = f"The plug-in {point.name!r} of {group} could not be loaded: {type(error).__name__}: {error}"
            warnings.warn(told, RuntimeWarning, stacklevel=2)
    return found


def _files(path: str) -> list[Path]:
    try:
        return list(Path(path or ".").glob("*-info/entry_points.txt"))
    except OSError:
        return []


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
