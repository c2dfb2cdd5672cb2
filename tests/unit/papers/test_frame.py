"""`epsilons papers`: cells, what is kept of them, expectations, claims, pictures and pages."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from epsilons.cli.app import main
from epsilons.mechanisms.base import create
from epsilons.mechanisms.exponential import Exponential
from epsilons.papers import running
from epsilons.papers.catalogue import PAPERS, choose, load_paper
from epsilons.papers.claims import Verdict, compare, worst
from epsilons.papers.drawing import STYLES, color_of
from epsilons.papers.expectations import expect, law_of
from epsilons.papers.figures import Cell, Curve, Row, Table, root_mean_square, total_variance
from epsilons.papers.population import Users
from epsilons.papers.running import Task, measure, measure_all
from epsilons.plots import pick_color
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded

ROOT = Path(__file__).parents[3]


# A run ---------------------------------------------------------------------------------------------------------------


def test_everything_runs_quickly_and_leaves_numbers_pictures_and_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["papers", "all", "--quick", "--jobs", "2", "--out", str(tmp_path)]) == 0
    for paper, figure in choose("all"):
        file = tmp_path / f"{paper.key}-{figure.number}"
        assert file.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        rows = list(csv.DictReader(file.with_suffix(".csv").read_text(encoding="utf-8").splitlines()))
        for letter, panel in figure.panels.items():
            own = [row for row in rows if row["panel"] == letter]
            assert {row["curve"] for row in own} == set(panel.curves)
            assert all(np.isfinite([float(row["value"]), float(row["standard_error"])]).all() for row in own)
    checked = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    declared = {(paper.key, claim.number) for paper in map(load_paper, PAPERS) for claim in paper.claims}
    assert {(one["key"], one["number"]) for one in checked} == declared
    assert {one["verdict"] for one in checked} <= {verdict.value for verdict in Verdict}
    assert all(one["claim"] in (tmp_path / "claims.md").read_text(encoding="utf-8") for one in checked)
    assert "does not hold" in capsys.readouterr().out


def test_a_seed_gives_the_same_numbers_whatever_the_jobs(tmp_path: Path) -> None:
    def run(jobs: int, seed: int) -> str:
        folder, chosen = tmp_path / f"{jobs} {seed}", choose("mixed", "1a")
        (table,) = measure_all(chosen, folder, jobs=jobs, seed=seed, quick=True, progress=lambda *_: None)
        return table.csv()

    assert run(1, 1) == run(2, 1) != run(1, 2)


def test_what_was_measured_is_taken_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Task] = []
    shown: list[tuple[float, float]] = []

    def counted(task: Task) -> list[Row]:
        done.append(task)
        return measure(task)

    def run(seed: int = 1, quick: bool = True) -> tuple[Table, int]:
        done.clear()
        chosen = choose("mixed", "groups")
        (table,) = measure_all(
            chosen, tmp_path, jobs=1, seed=seed, quick=quick, progress=lambda *part: shown.append(part)
        )
        return table, len(done)

    monkeypatch.setattr(running, "measure", counted)
    first, cells = run()
    assert cells == len(shown) - 1 == 9
    assert shown[-1][0] == pytest.approx(shown[-1][1])
    assert run() == (first, 0)
    next(tmp_path.iterdir()).write_text("[[", encoding="utf-8")
    assert run() == (first, 1)
    assert run(seed=2)[1] == run(quick=False)[1] == 9


def test_a_cell_has_its_own_randomness() -> None:
    def draws(cell: Cell) -> tuple[float, int]:
        return float(cell.random.random()), cell.entropy.bits(64)

    cells = [Cell("mixed 1a 100"), Cell("mixed 1a 200"), Cell("mixed 1b 100"), Cell("mixed 1a 100", seed=2)]
    assert len({draws(cell) for cell in cells}) == 4
    assert draws(Cell("mixed 1a 100", quick=True)) == draws(Cell("mixed 1a 100"))
    assert not cells[0].entropy.private


def test_a_wrong_figure_or_a_missing_part_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["papers", "mixed", "--figure", "9z"]) == 5
    assert "There are 1, ranges, two-groups, groups, 2, 1a" in capsys.readouterr().err
    assert main(["papers", "all", "--figure", "1a"]) == 5
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["papers", "mixed", "--out", str(tmp_path / "none")]) == 5
    assert "pip install 'epsilons[plots]'" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_panel_is_named_so_that_it_can_be_read() -> None:
    assert [choose(*one)[0][1].number for one in (("mixed", "1a"), ("pdp", "wages-a"))] == ["1a", "wages-a"]
    assert choose("pdp", "wages-a")[0][1].part_of == "wages"


def test_figures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["papers", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(paper.cite in listed for paper in map(load_paper, PAPERS))


# Expectations --------------------------------------------------------------------------------------------------------

_LEVELS = np.repeat([0.1, 0.5, 2.0], 40)
_MEDIAN = order.median((1, 1000), 1)
ASKED = {
    "count": Question(Count(), density=0.3),
    "mean": Question(Mean((1.0, 1000.0)), spread=200.0),
    "median": Question(_MEDIAN, spread=200.0),
}


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("asked", "name", "options"),
    [
        ("mean", "sample", {"threshold": "max"}),
        ("mean", "mixed", {}),
        ("mean", "weighted", {}),
        ("mean", "stretching", {}),
        ("count", "sample", {"threshold": "max"}),
        ("count", "mixed", {}),
        ("count", "exponential", {}),
        ("median", "exponential", {}),
        ("median", "mixed", {}),
        ("median", "weighted", {}),
    ],
)
def test_expected_answers_are_those_that_are_drawn(asked: str, name: str, options: dict[str, str]) -> None:
    """Over 1,000 draws: the mean within four standard errors, the variance within 30%; a scale 30% off misses it."""
    random, question = np.random.default_rng(5), ASKED[asked]
    users = Users(people=len(_LEVELS), density=0.3)
    values = users.bits(random) if asked == "count" else users.numbers(random)
    people, mechanism = ArrayPeople.of(values, roster_of(_LEVELS)), create(name, question.statistic, **options)
    expected = expect(mechanism, question, people, seeded(1))
    drawn = mechanism.simulate(question, people, seeded(2), 1_000)
    spread = expected.variance**0.5
    assert drawn.mean() == pytest.approx(expected.mean, abs=4 * spread / 1_000**0.5)
    assert drawn.var() == pytest.approx(expected.variance, rel=0.3)
    assert 1.3**2 * expected.variance > 1.3 * drawn.var()
    assert expected.square(expected.mean + 3) == pytest.approx(expected.variance + 9)


@pytest.mark.statistical
def test_of_a_sampled_median_the_coins_alone_are_drawn() -> None:
    question, values = ASKED["median"], Users(people=len(_LEVELS)).numbers(np.random.default_rng(5))
    people, sample = ArrayPeople.of(values, roster_of(_LEVELS)), create("sample", _MEDIAN, threshold="max")
    entropy = seeded(3)
    laws = [expect(sample, question, people, entropy) for _ in range(150)]
    drawn = sample.simulate(question, people, seeded(4), 150)
    means = [law.mean for law in laws]
    assert np.mean(means) == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 150**0.5)
    assert np.var(means) + np.mean([law.variance for law in laws]) == pytest.approx(drawn.var(), rel=0.5)
    assert np.var(means) > 0


@pytest.mark.parametrize("asked", ["count", "median"])
def test_a_law_in_plain_floats_is_the_exact_one(asked: str) -> None:
    question, random = ASKED[asked], np.random.default_rng(6)
    users = Users(people=len(_LEVELS), density=0.3)
    values = users.bits(random) if asked == "count" else users.numbers(random)
    people, mechanism = ArrayPeople.of(values, roster_of(_LEVELS)), create("exponential", question.statistic)
    assert isinstance(mechanism, Exponential)
    outcomes, chances = law_of(mechanism.blocks(question, people), mechanism.unit)
    listed, exact = mechanism.sampler(question, people).probabilities()
    order_ = np.argsort(outcomes)
    assert outcomes[order_].tolist() == listed.tolist()
    assert chances[order_] == pytest.approx(exact, rel=1e-11)


def test_errors_of_the_simulation_are_stated() -> None:
    squares = np.random.default_rng(1).chisquare(1, (400, 50))
    rows = [root_mean_square("weighted", 1.0, own) for own in squares]
    assert np.std([row.value for row in rows]) == pytest.approx(np.mean([row.error for row in rows]), rel=0.15)
    normal = np.random.default_rng(2).normal(0, 2, (400, 50))
    totals = [total_variance("weighted", 1.0, own, np.full(50, 3.0)) for own in normal]
    assert np.mean([row.value for row in totals]) == pytest.approx(7, rel=0.03)
    assert np.std([row.value for row in totals]) == pytest.approx(np.mean([row.error for row in totals]), rel=0.15)


# Claims and pictures -------------------------------------------------------------------------------------------------


def test_a_curve_is_below_another_only_beyond_the_error_of_the_simulation() -> None:
    def curve(*values: float, error: float = 0.1) -> Curve:
        return Curve(list(range(len(values))), np.array(values), np.full(len(values), error))

    assert compare(curve(1, 2), curve(2, 3)) is Verdict.HOLDS
    assert compare(curve(1, 2.9), curve(2, 3)) is Verdict.UNDECIDED
    assert compare(curve(1, 4), curve(2, 3)) is Verdict.FAILS
    assert worst([Verdict.HOLDS, Verdict.UNDECIDED]) is Verdict.UNDECIDED


def test_curves_are_told_apart_by_color_where_mechanisms_differ_and_in_black_and_white() -> None:
    for paper, figure in choose("all"):
        for panel in figure.panels.values():
            for one, other in itertools.combinations(panel.curves, 2):
                assert (STYLES[one].dashes, STYLES[one].marker) != (STYLES[other].dashes, STYLES[other].marker), paper
    for style in STYLES.values():
        assert style.mechanism == "bound" or pick_color(style.mechanism) == color_of(
            next(key for key, own in STYLES.items() if own is style)
        )


def test_the_pages_hold_every_claim_that_is_declared() -> None:
    """`make papers` writes them."""
    claims = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    corrections = (ROOT / "docs" / "corrections.md").read_text(encoding="utf-8")
    for paper in map(load_paper, PAPERS):
        assert [claim.number for claim in paper.claims] == list(range(1, len(paper.claims) + 1))
        for claim in paper.claims:
            assert f"| {claim.number} | {claim.says} | {claim.place} |" in claims
            assert (claim.instead != "") == (f"| {claim.place} | {claim.says} |" in corrections)
