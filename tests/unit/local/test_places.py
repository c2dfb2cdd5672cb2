"""Cells on a map: every point belongs to one, ids and labels lead back, pictures show what they are given."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from epsilons.errors import DataError, EpsilonsError, PlanError, ProtocolError
from epsilons.local import SamplingPrivacy
from epsilons.local.places import Box, Grid, H3Grid, Region, SquareGrid, checkins_from, grid_from, read_checkins

NEW_YORK: Box = (40.70, -74.02, 40.80, -73.93)
EIFFEL = (48.8584, 2.2945)


def grids() -> list[Grid]:
    found: list[Grid] = [SquareGrid((40.75, -73.975), miles=0.5), SquareGrid((40.75, -73.975))]
    try:
        import h3  # noqa: F401
    except ImportError:
        return found
    return [*found, H3Grid(8)]


@pytest.mark.parametrize("grid", grids(), ids=repr)
def test_a_point_lies_inside_its_cell(grid: Grid) -> None:
    random = np.random.default_rng(1)
    latitudes, longitudes = random.uniform(40.70, 40.80, 300), random.uniform(-74.02, -73.93, 300)
    for cell, latitude, longitude in zip(
        grid.cells(latitudes, longitudes).tolist(), latitudes, longitudes, strict=True
    ):
        corners = np.array(grid.outline(cell))
        assert corners[:, 0].min() <= latitude <= corners[:, 0].max()
        assert corners[:, 1].min() <= longitude <= corners[:, 1].max()
        assert grid.cell_of(grid.label(cell)) == cell
        middle = corners.mean(axis=0)
        assert grid.cells(middle[0], middle[1])[0] == cell


@pytest.mark.parametrize("grid", grids(), ids=repr)
def test_a_region_numbers_its_cells_and_everything_else_is_none(grid: Grid) -> None:
    region = Region.of(grid, NEW_YORK)
    centres = np.array([np.mean(region.grid.outline(cell), axis=0) for cell in region.ids])
    assert region.numbers(centres[:, 0], centres[:, 1]).tolist() == list(range(1, len(region) + 1))
    away = ([*EIFFEL[:1], np.nan, 91, 40.75, np.inf], [EIFFEL[1], -73.9, -73.97, np.nan, 0])
    assert region.numbers(*away).tolist() == [0] * 5
    again = Region.from_labels(grid_from(grid.to_dict()), region.labels)
    assert again == region
    assert len(set(region.ids)) == len(region)


def test_the_papers_grid_has_32_bit_ids_and_its_size() -> None:
    grid = SquareGrid((10.0, 20.0))
    assert grid.side**2 < 2**32
    assert grid.side * grid.miles == pytest.approx(9_500, rel=1e-4)
    south, west = grid.outline(1)[0]
    first = grid.cells(south + 1e-4, west + 1e-4)
    assert first.tolist() == [1]
    north, east = grid.outline(grid.side**2)[2]
    assert grid.cells(north - 1e-4, east - 1e-4).tolist() == [grid.side**2]
    assert grid.cells(south - 1e-3, west + 1e-3).tolist() == [0]


def test_a_square_is_as_wide_as_it_says() -> None:
    """The distance on the globe between two corners, by the haversine, near the centre."""
    grid = SquareGrid((52.5, 13.4), miles=1.0)
    (a, b), (c, d), *_ = np.radians(grid.outline(int(grid.cells(52.5, 13.4)[0])))
    half = np.sin((c - a) / 2) ** 2 + np.cos(a) * np.cos(c) * np.sin((d - b) / 2) ** 2
    assert 2 * 3958.8 * np.arcsin(np.sqrt(half)) == pytest.approx(1.0, rel=2e-3)


def test_a_heat_map_shows_one_cell_per_option() -> None:
    pytest.importorskip("matplotlib")
    region = Region.of(SquareGrid((40.75, -73.975), miles=1.0), NEW_YORK)
    protocol = SamplingPrivacy(len(region), 0.45)
    counts = np.zeros(len(region) + 1, int)
    axes = region.heat_map(protocol.estimate(counts + 5, counts + 5), title="here")
    assert len(axes.collections[0].get_paths()) == len(region)
    assert axes.get_title() == "here"
    axes.figure.canvas.draw()
    shown = region.heat_map(np.arange(len(region)) - 3).collections[0].get_array()
    assert shown is not None
    assert shown.min() == 0
    with pytest.raises(DataError):
        region.heat_map([1, 2])


def test_what_makes_no_sense_is_refused() -> None:
    grid = SquareGrid(EIFFEL)
    for box in ((50.0, 0.0, 40.0, 1.0), (0.0, 5.0, 1.0, 5.0), (-100.0, 0.0, 1.0, 1.0)):
        with pytest.raises(PlanError):
            grid.cells_in(box)
    with pytest.raises(PlanError, match="too many cells"):
        grid.cells_in((40.0, 0.0, 60.0, 20.0))
    with pytest.raises(PlanError, match="No cell"):
        Region.of(grid, (10.0, 100.0, 10.00001, 100.00001))
    for points in (("a", 1), ([1, 2], [1]), ([[1]], [[1]])):
        with pytest.raises(DataError):
            grid.cells(*points)
    for document in ({}, {"grid": "hex"}, {"grid": "square"}, {"grid": "square", "center": 3}, {"grid": "h3"}):
        with pytest.raises(ProtocolError):
            grid_from(document)
    for label in ("cell 0", "cell 99999999999", "cell x", "²"):
        with pytest.raises(ProtocolError):
            grid.cell_of(label)
    for wrong in (
        lambda: SquareGrid((95, 0)),
        lambda: SquareGrid(EIFFEL, side=70_000),
        lambda: H3Grid(16),
        lambda: H3Grid(True),
    ):
        with pytest.raises(EpsilonsError):
            wrong()


# Check-ins ------------------------------------------------------------------------------------------------------------

GOWALLA = """\
0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847
0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315
1\t2010-10-17T23:42:03Z\t40.6438845363\t-73.7828063965\t316637
broken
2\t2010-10-17T23:42:03Z\t140.6\t-73.78\t1

3\t2010-10-17T23:42:03Z\tnan\t-73.78\t1
"""


@pytest.mark.parametrize("name", ["g.txt", "g.txt.gz"])
def test_check_ins_are_the_last_of_each_user(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(GOWALLA.encode()) if name.endswith("gz") else GOWALLA.encode())
    found = read_checkins(path)
    assert found.users == ("0", "1")
    assert found.latitudes.tolist() == [30.2359091167, 40.6438845363]
    assert found.places == ("22847", "316637")
    assert found.bad == (4, 5, 7)
    austin = read_checkins(path, every=True, box=(30, -98, 31, -97))
    assert (austin.users, austin.places) == (("0", "0"), ("22847", "420315"))
    assert checkins_from(["7\t2010\t30.2\t-97.8"]).places == ("",)


def test_no_check_ins_are_no_error_and_no_file_is(tmp_path: Path) -> None:
    assert checkins_from([]).users == ()
    (tmp_path / "x.gz").write_bytes(b"not gzip")
    for name in ("gone.txt", "x.gz"):
        with pytest.raises(DataError):
            read_checkins(tmp_path / name)
