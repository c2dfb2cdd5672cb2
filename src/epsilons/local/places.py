"""Places on a map as options of a question: coordinates to cells, cells to numbers, estimates to a picture.

A grid turns coordinates into a cell's id, a whole number above 0; 0 is outside. A `Region` is the list of cells that a
survey asks about, which is public and chosen beforehand: the truth of an owner in its k-th cell is k, elsewhere 0.
`read_checkins` reads files of check-ins: user, time, latitude, longitude, place.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import check_whole
from epsilons.errors import Argument, DataError, PlanError, ProtocolError
from epsilons.local.base import MAX_OPTIONS
from epsilons.local.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: (south, west, north, east) in degrees.
Box = tuple[float, float, float, float]
#: Corners of a cell as (latitude, longitude).
Outline = list[tuple[float, float]]

_MILES_PER_DEGREE = 69.0547  # of a great circle of radius 3,958.8 miles, at 4 digits more than a cell needs


@dataclass(frozen=True)
class SquareGrid:
    """Joy's grid (section 4): squares of .15 miles in a square of 9,500 by 9,500 miles, with 32-bit ids.

    63,333 cells on each side are 4,011,068,889 in all, below 2^32. Ids count from 1, row by row from the south-west.
    Miles are measured along the meridian and along the centre's parallel, so squares are true near the centre.

    >>> grid = SquareGrid(center=(48.8584, 2.2945))
    >>> cell = int(grid.cells(48.8584, 2.2945)[0])
    >>> 0 < cell < 2**32, int(grid.cells(48.8584, 2.2945 + 180)[0])
    (True, 0)
    """

    center: tuple[float, float]
    miles: float = 0.15
    side: int = 63_333

    def __post_init__(self) -> None:
        latitude, longitude = self.center
        on_the_map = abs(latitude) < 85 and abs(longitude) <= 180
        if not (on_the_map and 0 < self.miles < 1000 and 0 < self.side <= 65_535):
            raise PlanError("This grid is not usable.", rule="A centre in degrees, at most 65,535 cells a side.")

    @property
    def _degrees(self) -> tuple[float, float]:
        height = self.miles / _MILES_PER_DEGREE
        return height, height / math.cos(math.radians(self.center[0]))

    def cells(self, latitudes: Any, longitudes: Any) -> NDArray[np.uint64]:
        """The id of the cell of each point; 0 outside."""
        latitude, longitude = read_points(latitudes, longitudes)
        height, width = self._degrees
        east = (longitude - self.center[1] + 180) % 360 - 180
        rows = np.floor((latitude - self.center[0]) / height + self.side / 2)
        columns = np.floor(east / width + self.side / 2)
        inside = (rows >= 0) & (rows < self.side) & (columns >= 0) & (columns < self.side)
        return np.where(inside, 1 + rows * self.side + columns, 0).astype(np.uint64)

    def cells_in(self, box: Box) -> list[int]:
        """The ids of the cells whose centre lies in a box."""
        south, west, north, east = check_box(box)
        height, width = self._degrees
        rows = self._between((south - self.center[0]) / height, (north - self.center[0]) / height)
        columns = self._between((west - self.center[1]) / width, (east - self.center[1]) / width)
        check_cells(len(rows) * len(columns))
        return [1 + row * self.side + column for row in rows for column in columns]

    def _between(self, low: float, high: float) -> range:
        """The rows or columns whose middle lies between two distances from the centre."""
        first, last = math.ceil(low + self.side / 2 - 0.5), math.floor(high + self.side / 2 - 0.5)
        return range(max(0, first), min(self.side - 1, last) + 1)

    def outline(self, cell: int) -> Outline:
        row, column = divmod(cell - 1, self.side)
        height, width = self._degrees
        south = self.center[0] + (row - self.side / 2) * height
        west = self.center[1] + (column - self.side / 2) * width
        return [(south, west), (south, west + width), (south + height, west + width), (south + height, west)]

    def label(self, cell: int) -> str:
        """A cell's name, from which `cell_of` gets the id back."""
        return f"cell {cell}"

    def cell_of(self, label: str) -> int:
        number = label.removeprefix("cell ")
        if not (number.isdecimal() and number.isascii() and len(number) <= 10 and 0 < int(number) <= self.side**2):
            raise ProtocolError("A label is not a cell of the grid.", suggest="cell 2005559445")
        return int(number)

    def to_dict(self) -> dict[str, Any]:
        return {"grid": "square", "center": list(self.center), "miles": self.miles, "side": self.side}


@dataclass(frozen=True)
class H3Grid:
    """Hexagons of the H3 grid (extra `places`), at a resolution from 0 (continents) to 15 (a square metre)."""

    resolution: int

    def __post_init__(self) -> None:
        what = "resolution must be a whole number from 0 to 15."
        check_whole(self.resolution, 0, 15, PlanError(what, suggest=Argument("resolution", 8)))

    def cells(self, latitudes: Any, longitudes: Any) -> NDArray[np.uint64]:
        h3 = _h3()
        latitude, longitude = read_points(latitudes, longitudes)
        found = [
            h3.str_to_int(h3.latlng_to_cell(a, b, self.resolution)) if abs(a) <= 90 else 0
            for a, b in zip(latitude.tolist(), longitude.tolist(), strict=True)
        ]
        return np.array(found, dtype=np.uint64)

    def cells_in(self, box: Box) -> list[int]:
        h3 = _h3()
        south, west, north, east = check_box(box)
        shape = h3.LatLngPoly([(south, west), (south, east), (north, east), (north, west)])
        area = h3.average_hexagon_area(self.resolution, unit="km^2")
        check_cells(int((north - south) * (east - west) * 111.0**2 * math.cos(math.radians(south)) / area / 2))
        found = sorted(h3.str_to_int(cell) for cell in h3.h3shape_to_cells(shape, self.resolution))
        check_cells(len(found))
        return found

    def outline(self, cell: int) -> Outline:
        h3 = _h3()
        return [(float(a), float(b)) for a, b in h3.cell_to_boundary(h3.int_to_str(cell))]

    def label(self, cell: int) -> str:
        return f"h3 {cell:x}"

    def cell_of(self, label: str) -> int:
        h3, text = _h3(), label.removeprefix("h3 ")
        if not h3.is_valid_cell(text):
            raise ProtocolError("A label is not a cell of the grid.", suggest="h3 882a100d25fffff")
        return int(h3.str_to_int(text))

    def to_dict(self) -> dict[str, Any]:
        return {"grid": "h3", "resolution": self.resolution}


#: A division of the map into cells.
Grid = SquareGrid | H3Grid


def grid_from(document: Mapping[str, Any]) -> Grid:
    """The inverse of a grid's `to_dict`: the `places` of a survey."""
    try:
        if document.get("grid") == "h3":
            return H3Grid(int(document["resolution"]))
        if document.get("grid") == "square":
            latitude, longitude = map(float, document["center"])
            sizes = float(document.get("miles", 0.15)), int(document.get("side", 63_333))
            return SquareGrid((latitude, longitude), *sizes)
    except (KeyError, TypeError, ValueError):
        pass
    raise ProtocolError("The grid is not usable.", rule='A grid "h3" or "square" with its numbers.')


@dataclass(frozen=True)
class Region:
    """The cells that a survey asks about; `numbers` gives owners' truths, `heat_map` a picture of an estimate."""

    grid: Grid
    ids: tuple[int, ...]

    @classmethod
    def of(cls, grid: Grid, box: Box) -> Region:
        ids = tuple(grid.cells_in(box))
        if not ids:
            raise PlanError("No cell's centre lies in the box.", suggest="a larger box")
        return cls(grid, ids)

    def __len__(self) -> int:
        return len(self.ids)

    def numbers(self, latitudes: Any, longitudes: Any) -> NDArray[np.uint32]:
        """Owners' truths: the number of their cell, 1 for the first one, 0 elsewhere."""
        cells, ids = self.grid.cells(latitudes, longitudes), np.array(self.ids, dtype=np.uint64)
        order = np.argsort(ids)
        found = order[np.minimum(np.searchsorted(ids, cells, sorter=order), len(ids) - 1)]
        return np.where(ids[found] == cells, found + 1, 0).astype(np.uint32)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.grid.label(cell) for cell in self.ids)

    @classmethod
    def from_labels(cls, grid: Grid, labels: Sequence[str]) -> Region:
        return cls(grid, tuple(grid.cell_of(label) for label in labels))

    def heat_map(self, numbers: Estimate | Any, axes: Axes | None = None, title: str = "") -> Axes:
        """A picture of how many owners are in each cell: an estimate, or one number per cell."""
        from epsilons.plots import plot_map

        values = numbers.values if isinstance(numbers, Estimate) else np.asarray(numbers, dtype=np.float64)
        if values.shape != (len(self),):
            raise DataError("Numbers and cells do not match.", rule="One number per cell.")
        # An estimate may be below 0; a picture of people starts there.
        return plot_map([self.grid.outline(cell) for cell in self.ids], np.maximum(values, 0), "people", title, axes)


def read_points(latitudes: Any, longitudes: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two arrays of degrees; a point that is none (missing, not finite, beyond a pole) is moved outside every grid."""
    try:
        latitude, longitude = (np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in (latitudes, longitudes))
    except (TypeError, ValueError):
        raise DataError("Coordinates are not numbers.", rule="Degrees.", suggest="[48.86] and [2.29]") from None
    if latitude.ndim != 1 or latitude.shape != longitude.shape:
        raise DataError("Latitudes and longitudes do not match.", rule="Two flat lists of equal length.")
    lost = ~(np.isfinite(latitude) & np.isfinite(longitude) & (np.abs(latitude) <= 90) & (np.abs(longitude) <= 540))
    return np.where(lost, 1e6, latitude), np.where(lost, 0.0, longitude)


def check_box(box: Box) -> Box:
    south, west, north, east = box
    if not (-90 <= south < north <= 90 and -180 <= west < east <= 180):
        rule, hint = "South, west, north, east in degrees.", Argument("box", (40.6, -74.1, 40.9, -73.8))
        raise PlanError("This box is not usable.", rule=rule, suggest=hint)
    return box


def check_cells(cells: int) -> None:
    """No more cells than a protocol has options."""
    if cells > MAX_OPTIONS:
        hint = "a smaller box or larger cells"
        raise PlanError("There are too many cells.", rule=f"At most {MAX_OPTIONS:,}.", suggest=hint)


def _h3() -> Any:
    try:
        import h3
    except ImportError:
        raise PlanError("The H3 grid needs the package h3.", suggest="pip install 'epsilons[places]'") from None
    return h3


@dataclass(frozen=True, eq=False)
class CheckIns:
    """Who was where; `places` are the file's own ids of locations, empty where it has none.

    `bad` are the numbers of lines that could not be read.
    """

    users: tuple[str, ...]
    latitudes: NDArray[np.float64]
    longitudes: NDArray[np.float64]
    places: tuple[str, ...]
    bad: tuple[int, ...]


def read_checkins(path: str | Path, *, every: bool = False, box: Box | None = None) -> CheckIns:
    """Read a file in the format of SNAP's Gowalla data, its cells apart by tabs; also one compressed as .gz."""
    with open_checkins(path) as lines:
        return checkins_from(lines, every=every, box=box)


@contextmanager
def open_checkins(path: str | Path) -> Iterator[Iterable[str]]:
    """The lines of such a file, for who does not want all of them at once."""
    try:
        opened = gzip.open if Path(path).suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as lines:
            yield lines
    except (OSError, EOFError):
        raise DataError("The check-ins cannot be read.", rule="Text, or text in .gz.", suggest="another path") from None


def checkins_from(lines: Iterable[str], *, every: bool = False, box: Box | None = None) -> CheckIns:
    """The last check-in of every user, by time, or `every` check-in; those outside a box are passed over.

    >>> found = checkins_from(["7\\t2010-10-19T23:55:27Z\\t30.2\\t-97.8\\t22847", "not a check-in"])
    >>> found.users, found.latitudes.tolist(), found.places, found.bad
    (('7',), [30.2], ('22847',), (2,))
    """
    south, west, north, east = (-90.0, -180.0, 90.0, 180.0) if box is None else check_box(box)
    kept: dict[str | int, tuple[str, float, float, str, str]] = {}
    bad = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        cells = line.rstrip("\r\n").split("\t")
        try:
            user, time, latitude, longitude = cells[0], cells[1], float(cells[2]), float(cells[3])
        except (IndexError, ValueError):
            user, time, latitude, longitude = "", "", math.nan, math.nan
        key = number if every else user
        if not (user and abs(latitude) <= 90 and abs(longitude) <= 180):
            bad.append(number)
        elif south <= latitude <= north and west <= longitude <= east and (key not in kept or time > kept[key][0]):
            kept[key] = (time, latitude, longitude, user, cells[4] if len(cells) > 4 else "")
    latitudes, longitudes = (np.array([row[k] for row in kept.values()], dtype=np.float64) for k in (1, 2))
    users, places = tuple(row[3] for row in kept.values()), tuple(row[4] for row in kept.values())
    return CheckIns(users, latitudes, longitudes, places, tuple(bad))
