"""`epsilons audit`: what it prints, the page it writes, and that it fails where something is refuted."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilons.cli.app import main
from epsilons.cli.commands import audit as command
from epsilons.dataset import audited
from epsilons.dataset.audited import GRANTS, WAYS, answer_once, ask_adaptively, audit_tables
from epsilons.local.randomized_response import truth_chance
from epsilons.noise.laplace import discrete_laplace
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.testing import seeded


def test_nothing_is_refuted_and_a_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "audit.html"
    assert main(["audit", "count", "functions", "--epsilons", "0.5,1", "--out", str(page)]) == 0
    told = capsys.readouterr().out
    assert "none refuted" in told
    assert "count by sample, replace" in told
    text = page.read_text(encoding="utf-8")
    assert "Nothing was refuted." in text
    assert "<svg" in text
    assert text.count("<h2>") == 2


def test_every_part_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "sum", "--epsilons", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sum"]["holds"]
    assert main(["audit", "count", "--epsilons", "1,1,1,1,1"]) == 5


def test_every_statistic_is_a_part() -> None:
    assert set(command.ASKED) == set(CATALOGUE)


def test_a_private_number_of_values_is_asked_about_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    """Where means are drawn in other ways: two sums, of which `mixed` asks every level."""
    assert main(["audit", "mean", "--epsilons", "0.5,1"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "mean by mixed, replace, values may be missing" in told
    assert "mean by exponential" not in told


def test_owners_who_answer_at_too_small_an_epsilon_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    held = command.audit_part("owners", [0.5, 1.0, 2.0], 200, None, lambda _: None)
    assert held.holds
    assert [finding.part for finding in held.findings] == pytest.approx([1.0] * 6)
    monkeypatch.setattr("epsilons.local.personal.truth_chance", lambda nano, options: truth_chance(2 * nano, options))
    assert not command.audit_part("owners", [0.5, 1.0], 200, None, lambda _: None).holds


def test_a_delta_is_audited_with_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "audit.html"
    given = ["--epsilons", "1", "--delta", "1e-6", "--out", str(page)]
    assert main(["audit", "sum", "linear_regression", "functions", *given]) == 0
    told = capsys.readouterr().out
    assert "rho" in told
    assert "but for a delta of 1e-06" in told
    assert "linear_regression by weighted, replace" in page.read_text(encoding="utf-8")
    assert main(["audit", "sum", "--delta", "7"]) != 0
    assert main(["audit", "owners", "--delta", "1e-6"]) != 0


def test_what_is_refuted_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A sensitivity that is too small: the total of values up to 3 is said to move by 3, and moves by 6."""
    monkeypatch.setattr(command, "_total", lambda values: 2 * sum(value for value in values if value == value))
    assert main(["audit", "functions", "--epsilons", "0.5,1"]) == 5
    assert "Refuted: noisy, absent" in capsys.readouterr().err


# Through a table and a ledger ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WAYS)
def test_each_way_gives_a_number_with_and_without_a_person(name: str) -> None:
    for data in ((0.0, 4.0, 4.0), (None, 4.0, 4.0)):
        answer, within = answer_once(WAYS[name], data)
        assert np.isfinite(answer).all()
        assert within


def test_a_transcript_follows_its_answers_until_nothing_is_left() -> None:
    class Scripted:
        """Answers as told; the third question finds nothing left."""

        def __init__(self, *answers: float) -> None:
            self.answers, self.asked = list(answers), list[str]()

        def _next(self, kind: str, share: float) -> Any:
            self.asked.append(f"{kind} {share:g}")
            if not self.answers:
                raise audited.BudgetExceeded("Nothing is left.")
            return type("Answer", (), {"value": self.answers.pop(0)})

        def count(self, where: str, share: float, fresh: bool = False) -> Any:
            return self._next(where, share)

        def sum(self, column: str, bounds: Any, share: float) -> Any:
            return self._next(column, share)

    many, few = Scripted(3.0, 8.0), Scripted(0.0, 2.0)
    assert ask_adaptively(many) == (2, 3, 2, 0, 0, 0, 0)
    assert ask_adaptively(few) == (2, 0, 2, 0, 0, 0, 0)
    assert many.asked == ["x >= 2 0.4", "x 0.4", "x >= 2 1"]
    assert few.asked == ["x >= 2 0.4", "x < 2 0.4", "x >= 2 1"]


def test_an_open_leak_is_refuted_and_honest_noise_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for a table, since each of its draws takes long: one that shows who is there, and one with noise.

    Seeded; an honest one would be refuted once in a thousand seeds at most.
    """
    source = seeded(4)

    def honest(way: Any, data: tuple[Any, ...]) -> tuple[float, bool]:
        return float(len([x for x in data if x is not None]) + discrete_laplace(source, Fraction(1, 2))), True

    monkeypatch.setattr(audited, "answer_once", honest)
    assert audit_tables(400).holds
    monkeypatch.setattr(audited, "answer_once", lambda way, data: (float(data[0] is None), True))
    found = audit_tables(200)
    assert len(found.refuted) == len(WAYS)
    assert {finding.granted for finding in found.findings} == {min(GRANTS.values())}
    assert "200 times on each side" in str(found)
    monkeypatch.setattr(audited, "answer_once", lambda way, data: (0.0, False))
    assert len(audit_tables(200).refuted) == len(WAYS)
    monkeypatch.setattr(audited, "answer_once", lambda way, data: ((1.0, float(data[0] is None)), True))
    assert {f.delta for f in audit_tables(200).findings if not f.holds} == {None, 1e-6}
