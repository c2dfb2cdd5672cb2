"""Files of check-ins in the format of SNAP's Gowalla data: user, time, latitude, longitude, place, apart by tabs."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError


@dataclass(frozen=True, eq=False)
class CheckIns:
    """One check-in per user, their last; `bad` are the numbers of lines that could not be read."""

    users: tuple[str, ...]
    latitudes: NDArray[np.float64]
    longitudes: NDArray[np.float64]
    bad: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.users)


def read_checkins(path: str | Path) -> CheckIns:
    """Read a file, also one compressed as .gz."""
    try:
        opened = gzip.open if Path(path).suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            return checkins_from(file)
    except (OSError, EOFError):
        raise DataError("The check-ins cannot be read.", rule="Text, or text in .gz.", suggest="another path") from None


def checkins_from(lines: Iterable[str]) -> CheckIns:
    """The last check-in of every user, by time.

    >>> found = checkins_from(["7\\t2010-10-19T23:55:27Z\\t30.2\\t-97.8\\t22847", "not a check-in"])
    >>> found.users, found.latitudes.tolist(), found.bad
    (('7',), [30.2], (2,))
    """
    last: dict[str, tuple[str, float, float]] = {}
    bad = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        cells = line.rstrip("\r\n").split("\t")
        try:
            user, time, latitude, longitude = cells[0], cells[1], float(cells[2]), float(cells[3])
        except (IndexError, ValueError):
            bad.append(number)
            continue
        if not (user and abs(latitude) <= 90 and abs(longitude) <= 180):
            bad.append(number)
        elif user not in last or time > last[user][0]:
            last[user] = (time, latitude, longitude)
    latitudes, longitudes = (np.array([point[k] for point in last.values()], dtype=np.float64) for k in (1, 2))
    return CheckIns(tuple(last), latitudes, longitudes, tuple(bad))
