"""The front page and the documentation say what is so: their code runs, their table and their links hold."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from epsilons.mechanisms.base import _REGISTRY, create, list_mechanisms
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question, Statistic
from epsilons.statistics.choice import Mode
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def _load_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = _load_build()

ASKED: dict[str, Statistic] = {
    "count": Count(),
    "sum": Sum((0, 1)),
    "mean": Mean((0, 1)),
    "variance": Variance((0, 1)),
    "median": order.median((0, 1)),
    "quantile": order.quantile(0.9, (0, 1)),
    "min": order.minimum((0, 1)),
    "max": order.maximum((0, 1)),
    "kth_largest": order.kth_largest(2, (0, 1)),
    "histogram": Histogram((0, 1, 2)),
    "mode": Mode(None, (0, 1)),
}


def test_the_example_runs_as_pasted(tmp_path: Path) -> None:
    examples = [code for language, _, code in build.code_blocks(README) if language == "python"]
    assert len(examples) == 2
    assert len(examples[0].splitlines()) <= 24
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", examples[0]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Plan for a mean" in done.stdout
    assert "personalized DP: a loss of at most" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_front_page_is_short_and_leads_every_user_on() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert text.count("<img ") + text.count("![") == 1, "one picture"
    for user in ("steward", "analyst", "person", "researcher", "collector"):
        assert f"(docs/start-{user}.md)" in text
    assert "**Promised.**" in text
    assert "**Not promised.**" in text


@pytest.mark.parametrize("page", build.pages(), ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path) -> None:
    assert build.run_blocks(page) == []


def test_pages_know_nothing_of_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two may register a table of one name: a user's state knows which ledger has it."""
    monkeypatch.setattr(build, "ROOT", tmp_path)
    for name in ("one", "two"):
        page = tmp_path / f"{name}.md"
        page.write_text(
            f"""```python
import epsilons as eps, pyarrow as pa

ledger = "sqlite:///{tmp_path / name}.ledger"
about = dict(person="id", preferences={{"a": 1.0}}, name="wages", version="1", ledger=ledger)
eps.Dataset.register(pa.table({{"id": ["a"]}}), **about).close()
```
"""
        )
        assert build.run_blocks(page) == []


@pytest.mark.parametrize("page", build.pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert build.broken_links(page) == []


@pytest.mark.parametrize("page", build.pages(), ids=lambda page: page.name)
def test_commands_are_there_and_take_their_options(page: Path) -> None:
    assert build.wrong_commands(page) == []


@pytest.mark.soak
@pytest.mark.parametrize("page", ["start-steward.md", "start-collector.md"])
def test_the_first_five_minutes_run_as_pasted(page: str, tmp_path: Path) -> None:
    blocks = [code for language, _, code in build.code_blocks(ROOT / "docs" / page) if language == "sh"]
    surroundings = {**os.environ, "HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    surroundings |= {"XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        ["sh", "-e"],
        input="\n".join(blocks),
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(blocks) >= 3
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_mentioned() -> None:
    assert build.unmentioned_names() == []


def test_the_table_says_what_the_mechanisms_say() -> None:
    """Asked one by one whether they refuse, not through a plan as the table's writer does."""
    levels = roster_of([0.1, 1.0]).levels
    tables = [table for page in build.pages() for table in build.tables(page)]
    assert len(tables) == 2, "one on the front page, one in docs/mechanisms.md"
    for table in tables:
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        columns = [[name.strip("` ") for name in cell.split(",")] for cell in head[2:]]
        assert sorted(name for column in columns for name in column) == sorted(ASKED)
        assert {row[0].strip("`") for row in rows} == set(list_mechanisms())
        for row in rows:
            mechanism = row[0].strip("`")
            for column, cell in zip(columns, row[2:], strict=True):
                for name in column:
                    serves = create(mechanism, ASKED[name]).refuses(Question(ASKED[name]), levels) is None
                    assert serves == (cell == "yes"), f"{mechanism} and {name}; docs/build.py --write"


def test_the_table_is_written_as_it_stands() -> None:
    assert {build.mechanism_table()} == {table for page in build.pages() for table in build.tables(page)}


def test_every_mechanism_has_a_section() -> None:
    assert set(list_mechanisms()) <= set(build.headings(ROOT / "docs" / "mechanisms.md"))


def test_the_front_page_names_its_papers_and_no_package_index() -> None:
    text = README.read_text(encoding="utf-8")
    for author in ("Jorgensen", "Cormode", "Alaggan", "Kermarrec", "Ferrando", "Kulesza"):
        assert author in text
    assert "://" not in text


def test_every_mechanism_says_who_had_it_first() -> None:
    """In the table, by a short name that docs/references.md explains, and in its own docstring."""
    known = build.references()
    assert len(set(known)) == len(known) > 25
    kinds = {name: kind for kind in ("personalized", "individual") for name in list_mechanisms(kind)}
    assert set(build.SOURCES) == set(kinds)
    for name, sources in build.SOURCES.items():
        assert sources, name
        assert set(sources) <= set(known), f"docs/references.md does not explain who had {name} first"
        for kind in _REGISTRY[name]:
            said = build.cited(str(kind.__doc__))
            lacking = [source for source in sources if (source.split()[0], source[-4:]) not in said]
            assert not lacking, f"the docstring of {kind.__name__} does not name {lacking}"
    for table in (table for page in build.pages() for table in build.tables(page)):
        rows = [line.strip("|").split(" | ") for line in table.splitlines()[2:]]
        assert {row[0].strip(" `"): tuple(row[1].split(", ")) for row in rows} == {
            name: build.SOURCES[name] for name in list_mechanisms()
        }


def test_nothing_is_claimed_that_others_had_first() -> None:
    claimed = re.compile(r"(weighted|robust)[^.|]*\b(this project|our own)\b")
    pages = (*build.pages(), ROOT / "CHANGELOG.md")
    assert [page.name for page in pages if claimed.search(page.read_text(encoding="utf-8"))] == []
    assert claimed.search("`weighted` and `robust`: this project.")


def test_every_paper_that_is_cited_stands_among_the_references() -> None:
    files = [*build.pages(), ROOT / "CHANGELOG.md", *sorted((ROOT / "src").rglob("*.py"))]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    assert sum(len(build.cited(text)) for text in texts.values()) > 60
    assert {str(file): build.unexplained(text) for file, text in texts.items() if build.unexplained(text)} == {}
    planted = "of March 1988, by Nobody, Noone\n    # and Neither 1999, and Jorgensen et\n al. 2015"
    assert build.unexplained(planted) == ["Nobody, Noone and Neither 1999"]


def test_the_drawing_of_the_rooms_names_all_of_them_and_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    layers = [layer for layer in layers if "__main__" not in layer]  # a door, and no room
    drawing = text.split("```")[1]
    assert [room for room in (layer.strip("()") for layer in layers) if not re.search(rf"\b{room}\b", drawing)] == []
    named = set(re.findall(r"\b(?:\w+/)*\w+\.py\b", text)) - {"__init__.py", "base.py"}
    assert len(named) > 30
    assert sorted(name for name in named if not (ROOT / "src" / "epsilons" / name).is_file()) == []


def test_a_page_that_lies_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n\n[gone](gone.md) [two](#two)\n\n```python\nx = 1\n```\n\n```pycon\n>>> x\n2\n```\n\n"
        "```python\nraise KeyError(x)\n```\n",
        encoding="utf-8",
    )
    shown, raised = build.run_blocks(page)
    assert "Expected:" in shown
    assert "KeyError: 1" in raised
    assert len(build.broken_links(page)) == 2


def test_a_command_that_is_not_there_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "`epsilons person leave people.toml`\n\n```sh\nepsilons mean people.toml wage \\\n  --shares 0.1 > out.txt\n"
        "epsilons mean people.toml wage --share 0.1\n"
        "printf 'no' | epsilons collect respond exam.toml --reply no\n```\n",
        encoding="utf-8",
    )
    found = build.wrong_commands(page)
    assert [why.rpartition("there is no ")[2] for why in found] == ["--shares", "--reply", "such command"]
