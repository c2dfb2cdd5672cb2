"""Joy, Figure 2, and its example on a map: check-ins from a file in the format of SNAP's Gowalla data, or made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epsilons.errors import DataError
from epsilons.local import RandomizedResponse, SamplingPrivacy
from epsilons.local.places import Box, CheckIns, Region, SquareGrid, checkins_from, open_checkins
from epsilons.noise import discrete_laplace_many
from epsilons.papers.figures import Cell, Figure, Panel, Row, Scale, Table
from epsilons.papers.sampling.errors import AGGREGATORS, PROTOCOLS, THEIRS, bound_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of a file these are used; all of it where it has none there.
NEW_YORK: Box = (40.49, -74.26, 40.92, -73.70)
#: The map: lower and midtown Manhattan.
CITY: Box = (40.70, -74.02, 40.80, -73.93)
_HUBS = ((40.758, -73.985, 0.006), (40.706, -74.009, 0.005), (40.731, -73.99, 0.012))
#: Of the made-up city: how many places, and how fast their popularity falls with their rank.
_PLACES, _FALL = 30_000, 0.8
#: Which places are shown, from the fullest on.
RANKS = (1, 4, 16, 64)
_CHUNK = 100_000


def make_city(random: np.random.Generator, checkins: int) -> Iterator[str]:
    """Check-ins of users who do not exist, as lines of a file: three crowds, and a quarter of the places anywhere."""
    south, west, north, east = CITY
    hubs = random.integers(0, len(_HUBS) + 1, _PLACES)
    middles, spreads = np.array([hub[:2] for hub in _HUBS]), np.array([hub[2] for hub in _HUBS])
    anywhere = random.uniform((south - 0.05, west - 0.05), (north + 0.05, east + 0.05), (_PLACES, 2))
    near = np.minimum(hubs, len(_HUBS) - 1)
    around = middles[near] + spreads[near, None] * random.standard_normal((_PLACES, 2))
    where = np.where((hubs < len(_HUBS))[:, None], around, anywhere)
    popularity = np.arange(1, _PLACES + 1) ** -_FALL
    places = random.choice(_PLACES, checkins, p=popularity / popularity.sum())
    users, days = random.integers(0, max(1, checkins // 2), checkins), random.integers(1, 29, checkins)
    for user, day, place in zip(users.tolist(), days.tolist(), places.tolist(), strict=True):
        latitude, longitude = where[place]
        yield f"{user}\t2010-10-{day:02}T12:00:00Z\t{latitude:.7f}\t{longitude:.7f}\t{place}"


def count_places(lines: Iterable[str], box: Box | None) -> Counter[str]:
    """How many check-ins each location of a box has; a chunk of the file at a time."""
    found: Counter[str] = Counter()
    rest = iter(lines)
    while chunk := list(islice(rest, _CHUNK)):
        found.update(checkins_from(chunk, every=True, box=box).places)
    return found


def read_places(file: Path) -> Counter[str]:
    """Those of New York; of a file that has nothing there, all."""
    for box in (NEW_YORK, None):
        with open_checkins(file) as lines:
            if found := count_places(lines, box):
                return found
    raise DataError("The file has no check-ins.", rule="User, time, latitude, longitude, location, apart by tabs.")


def measure_places(cell: Cell, setting: str) -> Iterator[Row]:
    """One bar for each protocol at each of four places. A check-in counts as an owner, as in the paper."""
    if cell.checkins:
        found = read_places(Path(cell.checkins))
    else:
        found = count_places(make_city(cell.random, cell.size(1_000_000, 20_000)), None)
    ranked, crowd = found.most_common(max(RANKS)), found.total()
    for rank in (rank for rank in RANKS if rank <= len(ranked)):
        count = ranked[rank - 1][1]
        for curve, error in bound_errors(count, crowd).items():
            yield Row(curve, f"{count:,} check-ins", error)


FIGURE_2 = Figure(
    "2",
    "errors that 95% of all estimates stay within, at four places",
    {
        "": Panel(
            "places of rank 1, 4, 16 and 64; coins .8 and .2; aggregators at epsilon 1",
            Scale("true number at the place"),
            Scale("absolute error, in check-ins", log=True),
            tuple(PROTOCOLS),
            ("places",),
            measure_places,
            weight=10,
            reads_checkins=True,
        )
    },
)


# On a map ------------------------------------------------------------------------------------------------------------

#: Against an observer of one answer.
EPSILON = 3.0
MAPS = {"a": "truth", "b": "sampling-privacy", "c": "randomized-response", "d": "aggregators"}


def region() -> Region:
    """Joy's squares, half a mile wide."""
    south, west, north, east = CITY
    return Region.of(SquareGrid(((south + north) / 2, (west + east) / 2), miles=0.5), CITY)


def measure_map(letter: str, cell: Cell, setting: str) -> Iterator[Row]:
    """How many users were last in each square: in truth, by a protocol, all cells asked at once, or by aggregators."""
    checkins = _last_checkins(cell)
    squares = region()
    truths = squares.numbers(checkins.latitudes, checkins.longitudes)
    response = RandomizedResponse(epsilon=EPSILON, options=len(squares))
    if letter in "ad":
        values = np.bincount(truths, minlength=len(squares) + 1)[1:].astype(float)
        if letter == "d":
            noises = discrete_laplace_many(cell.entropy, Fraction(THEIRS), AGGREGATORS * len(squares))
            values += noises.reshape(AGGREGATORS, -1).sum(axis=0)
    else:
        protocol = SamplingPrivacy(len(squares), response.truth) if letter == "b" else response
        rounds = protocol.respond(truths, entropy=cell.entropy)
        values = protocol.estimate(*map(protocol.count, rounds)).values
    for label, value in zip(squares.labels, values.tolist(), strict=True):
        yield Row(MAPS[letter], label, value)


def _last_checkins(cell: Cell) -> CheckIns:
    if cell.checkins:
        with open_checkins(cell.checkins) as lines:
            return checkins_from(lines, box=CITY)
    # The same people in every panel: a panel's own randomness is for its coins.
    return checkins_from(make_city(np.random.default_rng(cell.seed), cell.size(100_000, 5_000)))


def draw_map(letter: str, axes: Axes, table: Table) -> None:
    """A heat map."""
    region().heat_map(table.curve(letter, MAPS[letter]).values, axes)
    axes.locator_params(axis="x", nbins=3)


_TITLES = {
    "a": "truth",
    "b": "Sampling Privacy",
    "c": "randomized response",
    "d": "three aggregators' own noise, epsilon 1",
}
_DEGREES = Scale("longitude, in degrees"), Scale("latitude, in degrees")

MAP = Figure(
    "map",
    "where users were last, in squares of half a mile; (b) and (c) at epsilon 3 against an observer of one answer",
    {
        letter: Panel(
            _TITLES[letter],
            *_DEGREES,
            (curve,),
            ("map",),
            partial(measure_map, letter),
            weight=3,
            draw=partial(draw_map, letter),
            reads_checkins=True,
        )
        for letter, curve in MAPS.items()
    },
    columns=2,
)
