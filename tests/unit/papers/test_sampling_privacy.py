"""Paper 3's figures and claims, and the example on a map."""

from pathlib import Path

import numpy as np
import pytest

from epsilons.local.places import Region, SquareGrid, checkins_from
from epsilons.papers import checkins, sampling_privacy
from epsilons.testing import seeded


def test_figure_6_exactly() -> None:
    assert sampling_privacy.figure_6() == {
        "Sampling Privacy": (3, 0, 3, 12, 24, 27, 36, 12, 11, 3, 6),
        "randomized response": (64, 63, 64, 70, 79, 81, 88, 70, 69, 64, 66),
    }


def test_figure_6_at_one_level_of_confidence() -> None:
    alike = sampling_privacy.figure_6(0.95)
    assert alike["Sampling Privacy"] == (3, 0, 3, 12, 24, 27, 35, 12, 11, 3, 6)
    assert alike["randomized response"] == (49, 48, 49, 55, 64, 66, 73, 55, 54, 49, 51)
    # Randomized response's printed bars stand at 99%; Sampling Privacy's at 2 deviations, 95.45%.
    assert sampling_privacy.figure_6(0.99)["randomized response"] == sampling_privacy.figure_6()["randomized response"]
    assert sampling_privacy.figure_6(0.9545)["Sampling Privacy"] == sampling_privacy.figure_6()["Sampling Privacy"]


def test_the_introductions_deviations() -> None:
    rows = [(n, round(printed), round(true, 1)) for n, printed, true in sampling_privacy.intro_deviations()]
    assert rows == [(10_000, 21, 24.5), (1_000_000, 212, 243.9)]


@pytest.mark.statistical
def test_the_error_stays_while_the_other_grows() -> None:
    """200 runs: a measured RMSE lies within 20% of the prediction (4 standard errors of it)."""
    found = sampling_privacy.constant_error((1_000, 10_000, 100_000), runs=200, entropy=seeded(5))
    for row in found:
        assert row.measured == pytest.approx(row.predicted, rel=0.2)
    sampling = [row.measured for row in found if row.protocol == "Sampling Privacy"]
    response = [row.measured for row in found if row.protocol == "randomized response"]
    assert max(sampling) / min(sampling) < 1.4
    assert response[-1] / response[0] > 6


def test_the_report_and_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert sampling_privacy.main(["--runs", "2", "--largest", "4", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    for part in (
        "Constant error",
        "Figure 6",
        "true epsilon",
        "the paper's claim",
        "0.0131",
        "2.05e-05",
        "1.83e-14",
        "0.0201",
    ):
        assert part in text
    assert len(list(tmp_path.glob("sampling-privacy-*.png"))) == 4


def test_a_made_up_city_is_estimated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = checkins_from(checkins.make_city(3_000))
    assert len(people.users) == 3_000
    assert people.bad == ()
    region = Region.of(SquareGrid((40.75, -73.975), miles=1.0), checkins.CITY)
    found = checkins.compare(people, region, 3.0, entropy=seeded(3))
    assert found["truth"].sum() < 3_000, "some are outside"
    low, high = found["Sampling Privacy"].bounds(0.999)
    assert np.mean((low <= found["truth"]) & (found["truth"] <= high)) > 0.98
    pytest.importorskip("matplotlib")
    file = tmp_path / "checkins.txt"
    file.write_text("\n".join(checkins.make_city(500)) + "\nnot a check-in\n")
    assert checkins.main([str(file), "--grid", "square", "--miles", "1", "--out", str(tmp_path / "city.png")]) == 0
    seen = capsys.readouterr()
    assert "Error over all cells" in seen.out
    assert "the first is line 501" in seen.err
    assert checkins.main(["gone.txt"]) == 1
