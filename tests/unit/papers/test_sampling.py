"""Joy: Figure 6 exactly, crowds, check-ins of one's own, and verdicts that need no simulation."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from epsilons.cli.app import main
from epsilons.local.places import checkins_from
from epsilons.papers.catalogue import choose, load_paper
from epsilons.papers.figures import Cell, Table
from epsilons.papers.sampling import city, errors
from epsilons.testing import seeded


def _table(number: str) -> Table:
    ((_, figure),) = choose("sampling", number)
    cell = Cell(number, quick=True)
    return Table(
        {k: [row for one in panel.settings for row in panel.measure(cell, one)] for k, panel in figure.panels.items()}
    )


def test_figure_6_exactly_and_at_one_level() -> None:
    bars = {
        (letter, curve): tuple(_table("6").curve(letter, curve).values.astype(int).tolist())
        for letter in "ab"
        for curve in errors.PRINTED
    }
    assert bars == {
        ("a", "sampling-privacy"): (3, 0, 3, 12, 24, 27, 36, 12, 11, 3, 6),
        ("a", "randomized-response"): (64, 63, 64, 70, 79, 81, 88, 70, 69, 64, 66),
        ("b", "sampling-privacy"): (3, 0, 3, 12, 24, 27, 35, 12, 11, 3, 6),
        ("b", "randomized-response"): (49, 48, 49, 55, 64, 66, 73, 55, 54, 49, 51),
    }
    # As printed, randomized response stands at 99%, Sampling Privacy at 2 deviations, 95.45%.
    for curve, level in {"randomized-response": 0.99, "sampling-privacy": 0.9545}.items():
        read = tuple(errors.bar(curve, truth, errors.CROWD, level) for truth in errors.SIZES.values())
        assert read == bars["a", curve]
    assert sum(errors.SIZES.values()) == sum(errors.AGES.values()) == 85


@pytest.mark.statistical
@pytest.mark.parametrize("curve", errors.COUNTED)
def test_errors_by_the_law_are_those_that_are_drawn(curve: str) -> None:
    """800 runs: means within four standard errors, deviations within 10% (4 standard errors); 30% off misses that."""
    protocol, crowd, entropy = errors.COUNTED[curve], 2_000, seeded(4)
    truths = (np.arange(crowd) < errors.YES).astype(np.uint8)
    rounds = (protocol.respond(truths, entropy=entropy) for _ in range(800))
    drawn = np.array([float(protocol.estimate(*map(protocol.count, one)).values[0]) for one in rounds])
    expected = errors.expect_estimate(protocol, errors.YES, crowd)
    spread = expected.variance**0.5
    assert expected.mean == pytest.approx(errors.YES)
    assert spread == pytest.approx(protocol.spread(errors.YES, crowd))
    assert drawn.mean() == pytest.approx(expected.mean, abs=4 * spread / 800**0.5)
    assert drawn.std() == pytest.approx(spread, rel=0.1)


def test_the_measured_error_is_that_of_the_law() -> None:
    found = {row.curve: row for row in errors.measure_crowd(Cell("crowd"), 10_000)}
    assert all(row.error == 0 for row in found.values())
    assert found["sampling-privacy"].value == pytest.approx((errors.YES * 0.55 / 0.45) ** 0.5)
    assert found["bound-local"].value < found["randomized-response"].value < found["sampling-deniability"].value


def test_a_file_of_check_ins_that_nothing_reads_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "checkins.txt", tmp_path / "out"
    file.write_text("7\t2010\t30.2\t-97.8\t22847\n")
    for which in (["pdp"], ["sampling", "--figure", "6"]):
        assert main(["papers", *which, "--quick", "--out", str(out), "--checkins", str(file)]) == 5
        assert "Nothing that was chosen reads" in capsys.readouterr().err
    assert not out.exists()


def test_a_file_of_check_ins_takes_the_place_of_the_made_up_city(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = list(city.make_city(np.random.default_rng(1), 2_000))
    assert checkins_from(lines, every=True).bad == ()
    file = tmp_path / "checkins.txt.gz"
    file.write_bytes(gzip.compress("\n".join([*lines, *30 * ["1\t2010\t40.7\t-74\tpier"], "none"]).encode()))
    counts = city.read_places(file)
    assert counts["pier"] == 30
    assert counts.total() == 2_030
    given = ["papers", "sampling", "--figure", "2", "--quick", "--jobs", "1", "--out", str(tmp_path)]
    assert main([*given, "--checkins", str(file)]) == 0
    shown = (tmp_path / "sampling-2.csv").read_text(encoding="utf-8")
    assert all(f"{count:,} check-ins" in shown for _, count in counts.most_common(4)[::3])
    made_up, given_ones = (
        sum(row.value for row in city.measure_map("a", Cell("map", quick=True, checkins=name), "map"))
        for name in ("", str(file))
    )
    assert 0 < given_ones < made_up
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("7\t2010\t30.2\t-97.8\t22847\n")
    assert city.read_places(elsewhere) == {"22847": 1}
    (tmp_path / "empty.txt").write_text("nothing\n")
    capsys.readouterr()
    assert main([*given, "--checkins", str(tmp_path / "empty.txt")]) != 0
    assert "no check-ins" in capsys.readouterr().err


def test_verdicts_that_need_no_simulation() -> None:
    tables = {number: _table(number) for number in ("3", "4", "5", "6", "7", "leakage")} | {
        "crowds": _table("crowds-b")
    }
    holds, fails = "holds", "does not hold"
    expected = {
        2: "holds with another constant",
        3: fails,
        4: fails,
        5: "holds with another constant",
        6: holds,
        7: fails,
        8: fails,
    }
    expected |= {10: fails, 11: holds, 13: fails, 14: holds, 15: holds, 16: holds}
    checks = {claim.number: claim.check for claim in load_paper("sampling").claims}
    assert {number: checks[number](tables).verdict.value for number in expected} == expected
