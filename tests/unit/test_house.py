"""Rules of the house, looked up in the sources themselves."""

import ast
import doctest
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import epsilons
from epsilons.ledger import tables as ledger_tables
from epsilons.mechanisms.base import _REGISTRY, Mechanism, Weighing
from epsilons.mechanisms.minimum import Minimum

SOURCE = Path(epsilons.__file__).parent
ROOT = Path(__file__).parents[2]
FILES = sorted(SOURCE.rglob("*.py"))

HEAVY = {
    "flint", "cryptography", "pyarrow", "rich", "matplotlib", "pandas", "scipy", "sklearn", "duckdb", "sqlglot",
    "psycopg", "click", "opendp", "pyspark", "uvicorn", "polars", "h3",
}  # fmt: skip

NAMES = [
    "BudgetExceeded",
    "DataError",
    "Dataset",
    "EpsilonsError",
    "Guarantee",
    "LedgerError",
    "PUBLIC",
    "Plan",
    "PlanError",
    "PreferenceError",
    "Preferences",
    "ProtocolError",
    "Release",
    "Roster",
    "audit",
    "connect",
    "correlation",
    "count",
    "covariance",
    "days",
    "distribution",
    "histogram",
    "hours",
    "individually",
    "kth_largest",
    "ledger",
    "linear_regression",
    "logistic_regression",
    "max",
    "mean",
    "mechanisms",
    "median",
    "min",
    "mode",
    "months",
    "noisy",
    "personalize",
    "plan",
    "quantile",
    "quarters",
    "ranges",
    "relation",
    "select",
    "simulate",
    "sum",
    "top",
    "variance",
    "weekdays",
    "weeks",
    "years",
]


def python(program: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# What users see -----------------------------------------------------------------------------------------------------


def test_exported_names_are_pinned() -> None:
    assert sorted(epsilons.__all__) == sorted(NAMES)
    assert all(hasattr(epsilons, name) for name in NAMES)
    assert epsilons.__version__ in (ROOT / "pyproject.toml").read_text()


def test_importing_loads_numpy_and_nothing_heavier() -> None:
    loaded = set(json.loads(python("import sys, json, epsilons; print(json.dumps(sorted(sys.modules)))")))
    assert "numpy" in loaded
    assert {name.split(".")[0] for name in loaded} & HEAVY == set()


def test_an_answer_loads_only_what_it_draws_with() -> None:
    program = """
import sys, json, epsilons as eps
for release in (eps.count([1, 0], [.5, 1]), eps.median([1, 2], [.5, 1], bounds=(0, 3))):
    str(release), release._repr_html_(), release.to_dict()
print(eps.plan("count", [.5, 1]))
print(json.dumps(sorted(sys.modules)))
"""
    loaded = {name.split(".")[0] for name in json.loads(python(program).splitlines()[-1])}
    assert loaded & HEAVY <= {"flint", "cryptography"}


def test_the_local_model_loads_only_what_it_draws_with() -> None:
    program = """
import sys, json
from epsilons.local import RandomizedResponse, SamplingPrivacy, Survey, plan
survey = Survey("Ever?", ("yes",), RandomizedResponse(epsilon=1), none="no")
survey.respond("yes"), str(survey.protocol.estimate([3, 4])), str(plan(.1))
print(json.dumps(sorted(sys.modules)))
"""
    loaded = {name.split(".")[0] for name in json.loads(python(program).splitlines()[-1])}
    assert loaded & HEAVY <= {"flint", "cryptography"}


def test_without_matplotlib_all_but_pictures_works() -> None:
    program = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("matplotlib", "pandas", "sklearn", "scipy"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
import epsilons as eps
plan = eps.plan("mean", [.1, 1.0], bounds=(0, 10))
assert "weighted" in str(plan) and plan._repr_html_()
assert eps.mean([1, 2], [.1, 1.0], bounds=(0, 10)).to_arrow().num_rows == 1
try:
    plan.plot()
except eps.PlanError as error:
    print(error)
"""
    assert python(program).strip() == "Pictures need matplotlib. Try: pip install 'epsilons[plots]'"


#: Every class that is registered, also where several have one name.
KINDS = [kind for kinds in _REGISTRY.values() for kind in kinds]


def unstated(kind: type[Mechanism]) -> list[str]:
    """What the docstring of a mechanism lacks."""
    summary, _, rest = (kind.__doc__ or "").partition("\n\n")
    headings = re.findall(r"^    ([A-Z][a-z]+):[ \n]", rest, flags=re.MULTILINE)
    parts = re.split(r"^    [A-Z][a-z]+:", rest, flags=re.MULTILINE)[1:]
    wanted = {
        "a first line that is one sentence": re.fullmatch(r"[^\n]+\.", summary.strip()) is not None,
        "the headings": headings == ["Definition", "Theorem", "Guarantee", "Cost", "Error"],
        "a text under each heading": all(len(part.strip()) > 10 for part in parts),
        "a file of its name": kind.__module__ == f"epsilons.mechanisms.{kind.name.replace('-', '_')}",
    }
    return [what for what, there in wanted.items() if not there]


def test_a_mechanism_states_its_definition_theorem_guarantee_cost_and_error() -> None:
    assert {kind.__name__: unstated(kind) for kind in KINDS if unstated(kind)} == {}


def test_a_docstring_that_lacks_something_is_seen() -> None:
    doc = str(Minimum.__doc__)
    planted = {
        "a first line that is one sentence": doc.replace(".\n\n", "\n\n", 1),
        "the headings": doc.replace("Cost:", "Price:"),
        "a text under each heading": re.sub(r"(?s)Theorem:.*?(?=\n    Guarantee:)", "Theorem: x", doc),
    }
    for what, text in planted.items():
        kind = type("Planted", (Minimum,), {"__doc__": text, "__module__": Minimum.__module__})
        assert unstated(kind) == [what]
    assert unstated(type("Planted", (Minimum,), {"__doc__": doc, "__module__": "elsewhere"})) == ["a file of its name"]


#: The family of a statistic draws and predicts, given who weighs how much.
OF_THE_FAMILY = {"draw", "simulate", "distribution", "predict_error", "worst_error", "stated_error", "error_bars"}


def more_than_weights(kind: type[Weighing]) -> set[str]:
    """What a mechanism that weighs, or a base between it and `Weighing`, does that is its statistic's to do."""
    between = [base for base in kind.__mro__ if issubclass(base, Weighing) and base is not Weighing]
    return {name for base in between for name in vars(base)} & OF_THE_FAMILY


def test_a_mechanism_that_weighs_holds_weights_and_charges_only() -> None:
    weighing = {kind.name: kind for kind in KINDS if issubclass(kind, Weighing)}
    assert set(weighing) >= {"minimum", "threshold", "sample", "stretching", "weighted", "robust"}
    assert {name: more_than_weights(kind) for name, kind in weighing.items() if more_than_weights(kind)} == {}


@pytest.mark.parametrize("name", sorted(OF_THE_FAMILY))
def test_a_planted_draw_of_its_own_is_seen(name: str) -> None:
    between = type("Between", (Minimum,), {name: None})
    assert more_than_weights(type("Planted", (between,), {})) == {name}


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages([str(SOURCE)], "epsilons.") if not m.name.endswith("__main__")]


def test_the_examples_in_docstrings_work() -> None:
    results = {name: doctest.testmod(importlib.import_module(name)) for name in ("epsilons", *modules())}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) > 20


def test_the_changelog_has_a_place_for_what_comes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## \[Unreleased\]$", text, flags=re.MULTILINE)
    assert re.search(r"^- ", text, flags=re.MULTILINE)
    told = [int(number) for number in re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE)]
    assert told == list(range(2, ledger_tables.FORMAT + 1)), "what a format of ledgers brought is told"


# How it is written --------------------------------------------------------------------------------------------------


def test_a_file_is_one_idea_long() -> None:
    assert [file for file in FILES if len(file.read_text().splitlines()) > 450] == []
    assert [file for file in FILES if file.name in ("utils.py", "helpers.py", "manager.py")] == []


def ladders(source: str) -> list[str]:
    """Questions about which statistic it is: a family is told by its own methods, a scope by the field."""
    return re.findall(r"isinstance\([^()]*statistic.*", source)


def test_hardly_anything_asks_which_statistic_it_was_given() -> None:
    found = [f"{file.relative_to(SOURCE)}: {text}" for file in FILES for text in ladders(file.read_text())]
    assert len(found) <= 10, found


@pytest.mark.parametrize(
    "planted",
    [
        "isinstance(statistic, Count)",
        "isinstance(question.statistic, (Sum, Mean))",
        "isinstance(\n  self.statistic, A",
    ],
)
def test_a_planted_ladder_is_seen(planted: str) -> None:
    assert ladders(f"if {planted}") == [planted]


# Made-up people are drawn with numpy's generator; nothing there is noise.
MADE_UP = ("demo", "papers")


def foreign_randomness(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [a.name for a in names if a.name.split(".")[0] in ("random", "secrets") or ".random" in a.name]
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in ("random", "secrets"):
                found.append(module)
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "numpy":
                found += [module for a in names if "random" in (module, a.name) or ".random" in module]
            case ast.Attribute(attr="random" | "urandom" | "getrandbits" | "default_rng" | "rand" | "RandomState"):
                found.append(node.attr)
    return found


def test_randomness_comes_from_the_noise_room() -> None:
    held = [file for file in FILES if file.relative_to(SOURCE).parts[0] not in ("noise", "demo.py", *MADE_UP)]
    assert len(held) > 100
    found = {str(file.relative_to(SOURCE)): foreign_randomness(file.read_text()) for file in held}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "import secrets",
        "import numpy.random",
        "from random import choice",
        "from secrets import token_bytes",
        "from numpy.random import default_rng",
        "from numpy import random",
        "x = np.random.default_rng()",
        "import os\nx = os.urandom(8)",
    ],
)
def test_planted_randomness_is_seen(planted: str) -> None:
    assert foreign_randomness(planted)


#: flint keeps one precision for the whole process. `working_precision` holds the lock; nothing else may set it.
PRECISION = re.compile(r"flint\.ctx|from flint import.*\bctx\b|\bwork(?:prec|dps)\b")


def test_the_precision_that_all_threads_share_is_set_in_one_place() -> None:
    found = [str(file.relative_to(SOURCE)) for file in FILES if PRECISION.search(file.read_text())]
    assert found == ["noise/entropy.py"]
    for planted in ("from flint import arb, ctx", "with ctx.workprec(64):", "flint.ctx.prec = 64"):
        assert PRECISION.search(planted)


def test_an_optional_part_is_imported_in_its_own_room_only() -> None:
    """The import linter looks at modules; this looks at every import statement, also inside functions."""
    rooms = {
        "matplotlib": ("plots.py", "demo", "demo.py", "papers"),
        "pyspark": ("engines",),
        "uvicorn": ("service",),
        "sklearn": ("estimators",),
        "h3": ("local",),
        "opendp": (),
        "scipy": (),
    }
    for file in FILES:
        room = file.relative_to(SOURCE).parts[0]
        for name in imports(ast.parse(file.read_text())):
            allowed = rooms.get(name.split(".")[0])
            assert allowed is None or room in allowed, f"{file.name} imports {name}"


def imports(tree: ast.AST) -> list[str]:
    """Every imported module, but those that only type checkers see."""
    if isinstance(tree, ast.If) and getattr(tree.test, "id", "") == "TYPE_CHECKING":
        return []
    found = [alias.name for alias in tree.names] if isinstance(tree, ast.Import) else []
    found += [tree.module or ""] if isinstance(tree, ast.ImportFrom) else []
    return found + [name for child in ast.iter_child_nodes(tree) for name in imports(child)]


# What must never be in the repository -------------------------------------------------------------------------------


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


# Written so that this file does not contain what it looks for.
FORBIDDEN = {
    "e-mail address": re.compile(r"[A-Za-z0-9._%+-]+[@][A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"),
    "path of a machine": re.compile(r"(?<![\w.:/])/(?:work|root|home|Users|tmp|opt|mnt)/[\w.]|[A-Z]:\\\\?Users\\"),
    "index address": re.compile(r"index[-]url|https?://[^\s)\"']*(?:/simple\b|artifactory|nexus|mirror)"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_private_is_in_the_repository(what: str) -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in FORBIDDEN[what].finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    ("what", "planted"),
    [
        ("e-mail address", "someone" + "@" + "example.org"),
        ("path of a machine", "see " + "/" + "home/someone/x.py"),
        ("path of a machine", '"' + "/" + 'root/.cache"'),
        ("index address", "--" + "index" + "-url=x"),
        ("index address", "https://" + "packages.example.org/" + "simple"),
    ],
)
def test_a_planted_secret_is_seen(what: str, planted: str) -> None:
    assert FORBIDDEN[what].search(planted)
