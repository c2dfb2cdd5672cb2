"""Where people are, asked of the people: the example of Joy and Gerla 2017 on a map.

    python -m epsilons.papers.checkins                             a made-up city
    python -m epsilons.papers.checkins loc-gowalla_totalCheckins.txt.gz --box 40.70 -74.02 40.80 -73.93

Every user's last check-in becomes a cell; users answer by Sampling Privacy and by randomized response; the estimates
stand beside the truth, which only an example may show.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epsilons.display import text_table
from epsilons.errors import EpsilonsError
from epsilons.local import RandomizedResponse, SamplingPrivacy
from epsilons.local.leakage import leakage_sheet
from epsilons.local.places import Box, CheckIns, Grid, H3Grid, Region, SquareGrid, checkins_from, read_checkins
from epsilons.noise import Entropy

#: Lower and midtown Manhattan, more or less.
CITY: Box = (40.70, -74.02, 40.80, -73.93)
_HUBS = ((40.758, -73.985, 0.006, 0.35), (40.706, -74.009, 0.005, 0.2), (40.731, -73.99, 0.012, 0.25))
_PROTOCOLS = ("Sampling Privacy", "randomized response")


def make_city(users: int, seed: int = 9) -> Iterator[str]:
    """Check-ins of users who do not exist, in the format of SNAP's Gowalla file: three crowds and some wanderers."""
    people = np.random.default_rng(seed)
    south, west, north, east = CITY
    shares = [share for *_, share in _HUBS]
    hubs = people.choice(len(_HUBS) + 1, users, p=[*shares, 1 - sum(shares)])
    for user, hub in enumerate(hubs.tolist()):
        if hub < len(_HUBS):
            *middle, spread, _ = _HUBS[hub]
            latitude, longitude = people.normal(middle, spread)
        else:
            latitude, longitude = people.uniform((south - 0.05, west - 0.05), (north + 0.05, east + 0.05))
        yield f"{user}\t2010-10-{1 + user % 28:02}T12:00:00Z\t{latitude:.7f}\t{longitude:.7f}\t{hub}"


def compare(checkins: CheckIns, region: Region, epsilon: float, entropy: Entropy | None = None) -> dict[str, Any]:
    """The truth, and both protocols' estimates at the same epsilon against an observer of one answer."""
    truths = region.numbers(checkins.latitudes, checkins.longitudes)
    response = RandomizedResponse(epsilon=epsilon, options=len(region))
    sampling = SamplingPrivacy(len(region), response.truth)
    (answers,) = response.respond(truths, entropy=entropy)
    first, second = sampling.respond(truths, entropy=entropy)
    return {
        "truth": np.bincount(truths, minlength=len(region) + 1)[1:],
        "randomized response": response.estimate(response.count(answers)),
        "Sampling Privacy": sampling.estimate(sampling.count(first), sampling.count(second)),
    }


def describe(found: dict[str, Any], region: Region, rows: int = 8) -> str:
    truth = found["truth"]
    bounds = {name: found[name].bounds(0.95) for name in _PROTOCOLS}
    table = []
    for place in np.argsort(-truth)[:rows]:
        cells = [region.labels[place], f"{truth[place]:,}"]
        for name, (low, high) in bounds.items():
            cells.append(f"{found[name].values[place]:,.0f} ({low[place]:,.0f} to {high[place]:,.0f})")
        table.append((*cells, ""))
    errors = [f"{name}: {np.sqrt(np.mean((found[name].values - truth) ** 2)):.1f} people" for name in _PROTOCOLS]
    parts = (
        f"{found['Sampling Privacy'].respondents:,} users, {len(region):,} cells, the {len(table)} fullest:",
        text_table(("cell", "truth", *(f"{name} (95%)" for name in _PROTOCOLS), ""), table),
        "Error over all cells (RMSE): " + "; ".join(errors),
        *(f"{name}\n{leakage_sheet(found[name].leakages)}" for name in _PROTOCOLS),
    )
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="check-ins in SNAP's Gowalla format (default: made up)")
    parser.add_argument("--box", type=float, nargs=4, default=CITY, metavar=("SOUTH", "WEST", "NORTH", "EAST"))
    parser.add_argument("--grid", choices=("h3", "square"), default="h3", help="hexagons, or the paper's squares")
    parser.add_argument("--resolution", type=int, default=8, help="of the H3 grid (default 8)")
    parser.add_argument("--miles", type=float, default=0.5, help="width of the squares (default 0.5)")
    parser.add_argument("--epsilon", type=float, default=3.0, help="against an observer of one answer (default 3)")
    parser.add_argument("--users", type=int, default=50_000, help="of the made-up city")
    parser.add_argument("--out", type=Path, help="file for the maps, such as city.png")
    options = parser.parse_args(arguments)
    try:
        checkins = checkins_from(make_city(options.users)) if options.file is None else read_checkins(options.file)
        south, west, north, east = options.box
        middle = ((south + north) / 2, (west + east) / 2)
        grid: Grid = H3Grid(options.resolution) if options.grid == "h3" else SquareGrid(middle, options.miles)
        region = Region.of(grid, (south, west, north, east))
        found = compare(checkins, region, options.epsilon)
    except EpsilonsError as error:
        print(error, file=sys.stderr)
        return 1
    print(describe(found, region))
    if checkins.bad:
        print(f"{len(checkins.bad):,} lines left out, the first is line {checkins.bad[0]}", file=sys.stderr)
    if options.out is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(15, 5.4), layout="constrained")
        for axes, (name, numbers) in zip(figure.subplots(1, 3), found.items(), strict=True):
            region.heat_map(numbers, axes, title=name)
        figure.savefig(options.out, dpi=130)
        print(f"maps in {options.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
