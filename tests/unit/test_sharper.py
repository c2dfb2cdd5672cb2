"""The tables of what is sharper at the same guarantee stand in the documentation as the command writes them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "sharper.py"


def test_the_documentation_has_the_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SOURCE.parent))
    found = importlib.util.spec_from_file_location("sharper", SOURCE)
    assert found is not None
    assert found.loader is not None
    sharper = importlib.util.module_from_spec(found)
    found.loader.exec_module(sharper)
    for page, table in sharper.TABLES.items():
        assert f"{sharper.START}\n\n{table()}\n\n{sharper.END}" in (sharper.DOCS / page).read_text(encoding="utf-8")
    assert sharper.main([]) == 0
    shown = capsys.readouterr().out
    assert "−18.8%" in shown
    assert "12.19" in shown
