"""Mechanisms and statistics from other packages: found by entry points, and audited before "auto" may choose them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.arguments.options import TABLES
from epsilons.arguments.reading import Settings, read_call
from epsilons.auditing.plugins import STAND_INS, approve
from epsilons.dataset.question import parse_question
from epsilons.errors import PlanError
from epsilons.mechanisms import vetting
from epsilons.mechanisms.base import OWN, Weighing, register, serving
from epsilons.mechanisms.minimum import Minimum
from epsilons.mechanisms.sample import Sample
from epsilons.mechanisms.vetting import is_vetted
from epsilons.preferences import roster_of
from epsilons.statistics.additive import Part
from epsilons.statistics.base import Answer, Question
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.count import Count
from epsilons.statistics.entry import Entry
from support.planted import AlphaOfTheData, SmallScale

pytestmark = pytest.mark.usefixtures("own_registry")
ROOT = Path(eps.__file__).parents[2]


def outside(name: str, kind: type, **members: Any) -> Any:
    """A mechanism of another package that promises to err by nothing at all, so that "auto" would take it."""
    errs = {"predict_error": lambda *_: 0.0, "worst_error": lambda *_: 0.0}
    made = type("Outside", (kind,), {"name": name, "__module__": "another.package", **errs, **members})
    return register(dataclass(frozen=True)(made))


def test_auto_takes_an_honest_one_from_outside_and_leaves_a_broken_one() -> None:
    outside("honest", Minimum)
    assert eps.count([1, 0, 1], [0.5, 1.0, 1.0]).mechanism == "honest"
    outside("broken", AlphaOfTheData)  # its charges are in order, and its noise is not
    assert eps.count([1, 0, 1], [0.5, 1.0, 1.0]).mechanism == "honest"
    assert eps.mean([1, 0, 1], [0.5, 1.0, 1.0], bounds=(0, 1)).mechanism == "honest"
    assert "broken" not in [row.mechanism for row in eps.plan("count", [0.5, 1.0]).rows]
    assert eps.count([1, 0, 1], [0.5, 1.0, 1.0], mechanism="broken").mechanism == "broken"


def test_one_that_cannot_be_looked_at_is_not_chosen() -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("no law")

    outside("hidden", Minimum, distribution=fail)
    assert eps.count([1, 0, 1], [0.5, 1.0, 1.0]).mechanism != "hidden"


def test_what_says_that_it_is_of_the_package_is_from_outside_all_the_same() -> None:
    assert set(OWN) >= {Minimum}
    assert outside("inside", AlphaOfTheData, __module__="epsilons.mechanisms.minimum") not in OWN
    assert eps.count([1, 0, 1], [0.5, 1.0, 1.0]).mechanism != "inside"


def test_every_mechanism_of_the_package_would_be_approved() -> None:
    """By the audit that those from outside have to pass, with the statistics that it serves."""
    for kind in (Minimum, *(type(m) for m in _served("count"))):
        assert approve(kind, "count", "absent")
    assert not approve(SmallScale, "count", "absent")
    own = {name for name, entry in CATALOGUE.items() if entry.example is not None}
    assert {*STAND_INS, *own} == {name for name, entry in CATALOGUE.items() if not entry.model}


def flip(mechanism: Any, question: Any, people: Any, entropy: Any) -> Answer:
    """Stands for any draw of one's own: randomized response loses four times the rho of a bounded range."""
    return Answer(0.0)


def test_a_draw_of_ones_own_has_no_bounded_range() -> None:
    """The audit holds it to pure losses: a concentrated account would pay an eighth of their square, not half."""
    given: dict[str, Any] = {"bounds": (0, 4), "step": 1, "neighbors": "replace"}
    for name, members in (("flips", {}), ("says-so", {"bounded_range": True})):
        outside(name, Minimum, draw=flip, **members)
        assert eps.median([0, 1, 4], 0.3, mechanism=name, **given).mechanism == name
        with pytest.raises(PlanError, match="exponential mechanisms alone"):
            eps.median([0, 1, 4], 0.3, mechanism=name, delta=1e-6, **given)
    own = ("flips", "says-so")
    assert eps.median([0, 1, 4], 0.3, complete=True, **given).mechanism in own
    assert eps.median([0, 1, 4], 0.3, **given).mechanism not in own  # it was audited where nothing is missing
    assert eps.median([0, 1, 4], 0.3, complete=True, delta=1e-6, **given).mechanism not in own


def test_a_sample_of_ones_own_has_no_bounded_range() -> None:
    outside("coins", Weighing, weigh=lambda _, question, levels: Sample().weigh(question, levels))
    given: dict[str, Any] = {"bounds": (0, 4), "step": 1, "mechanism": "coins"}
    assert eps.median([0, 1, 4], [0.3, 0.3, 1.0], **given).mechanism == "coins"
    with pytest.raises(PlanError, match="bounded range"):
        eps.median([0, 1, 4], [0.3, 0.3, 1.0], delta=1e-6, **given)


def test_in_concentrated_accounts_an_audit_vouches_for_any_loss_and_no_range() -> None:
    outside("honest", Minimum)
    given: dict[str, Any] = {"bounds": (0, 4), "step": 1, "delta": 1e-6}
    assert eps.count([1, 0, 1], 0.5, delta=1e-6).mechanism == "honest"
    assert eps.median([0, 1, 4], 0.5, **given).mechanism != "honest"
    assert eps.median([0, 1, 4], 0.5, mechanism="honest", **given).mechanism == "honest"


def _served(statistic: str) -> list[Any]:
    return [row.chosen for row in eps.plan(statistic, [0.5, 1.0]).rows]


def test_a_statistic_from_outside_is_audited_too() -> None:
    class Doubled(Count):
        """It counts everyone twice, and says nothing of it."""

        name: ClassVar[str] = "doubled"

    assert not is_vetted(Minimum, Question(Doubled()), own=False)  # nothing to audit it with


@dataclass(frozen=True)
class Seen(Count):
    """People who have a value, from another package."""

    name: ClassVar[str] = "seen"


@dataclass(frozen=True)
class SeenByTwo(Seen):
    """Noise of half of what it needs, where not everyone counts."""

    @property
    def parts(self) -> tuple[Part, ...]:
        (part,) = super().parts
        return (replace(part, share=Fraction(1 if self.scope is None else 2)),)


@pytest.fixture
def catalogued(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An entry of a statistic from outside, for as long as a test lasts."""

    def add(statistic: Any, build: Any) -> Entry:
        small = statistic(), (0.0, 1.0)
        made = Entry(name="seen", build=build, arguments=(), doc="Seen.", table_doc="Seen.", example=small)
        monkeypatch.setitem(CATALOGUE, "seen", made)
        vetting._vetted.clear()
        return made

    yield add
    vetting._vetted.clear()


def plan_seen(entry: Entry, **options: Any) -> list[str]:
    """Mechanisms that "auto" may choose, on a table of up to two rows of a person."""
    table = pa.table({"id": [0, 0, 1, 2], "x": [1.0, 0.0, 1.0, 1.0], "kind": ["a", "b", "a", "b"]})
    rows = options.pop("rows", 2)
    with eps.Dataset(table, person="id", preferences=1.0, rows_per_person=rows, ledger="memory") as people:
        question = parse_question(read_call(entry, TABLES, ("x",), options), people._facts).question
        levels = roster_of([1.0] * 3).levels
        return [type(one).__name__ for one in serving(question, levels, Settings())]


def test_a_statistic_from_outside_is_chosen_for_what_it_was_audited_with(catalogued: Any) -> None:
    """Conditions are audited like missing values; groups and several rows are not."""
    honest = catalogued(Seen, lambda given, over: Seen(None if over.fixed else over.scope))
    assert plan_seen(honest, rows=1)
    assert plan_seen(honest, rows=1, where="x > 0")
    for several in ({"rows": 2}, {"rows": 1, "by": {"kind": ["a", "b"]}}):
        with pytest.raises(PlanError, match="chosen for what it was audited with"):
            plan_seen(honest, **several)
    broken = catalogued(SeenByTwo, lambda given, over: SeenByTwo(None if over.fixed else over.scope))
    assert plan_seen(broken, rows=1)
    with pytest.raises(PlanError, match="chosen for what it was audited with"):
        plan_seen(broken, rows=1, where="x > 0")


def test_one_that_knows_of_everyone_alone_is_asked_of_nobody_else(catalogued: Any) -> None:
    forgetful = catalogued(Seen, lambda given, over: Seen())
    assert plan_seen(forgetful, rows=1)
    for other in ({"rows": 2}, {"rows": 1, "where": "x > 0"}, {"rows": 1, "by": {"kind": ["a", "b"]}}):
        with pytest.raises(PlanError, match="takes no condition, no groups and no further rows"):
            plan_seen(forgetful, **other)


MECHANISM = """
from dataclasses import dataclass
from fractions import Fraction
from epsilons.mechanisms.base import Weighing, register
from epsilons.statistics.base import Weighting

@register
@dataclass(frozen=True)
class Plain(Weighing):
    name = "plain"
    gist = "the strictest epsilon"

    def weigh(self, question, levels):
        return Weighting((1,) * len(levels.grants), 1, Fraction(levels.smallest))
"""
STATISTIC = """
from dataclasses import dataclass
from epsilons.statistics.count import Count
from epsilons.statistics.entry import Entry

@dataclass(frozen=True)
class Heads(Count):
    name = "heads"

def build(given, over):
    return Heads()

SMALL = (Heads(), (0.0, 1.0))
ENTRIES = (Entry(name="heads", build=build, arguments=(), doc="Heads.", table_doc="Heads.", example=SMALL),)
"""
PROGRAM = """
import json, warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import epsilons as eps
from epsilons.mechanisms.base import list_mechanisms
from epsilons.statistics.catalogue import CATALOGUE
heads = eps.heads([1, 1, 0], [0.5, 1.0, 1.0])
print(json.dumps([
    "plain" in list_mechanisms(), "heads" in CATALOGUE, heads.guarantee.neighbors, heads.mechanism,
    eps.count([1, 0], 0.5, mechanism="plain").mechanism, [str(one.message) for one in told],
]))
"""


def test_packages_bring_theirs_by_entry_points(tmp_path: Path) -> None:
    """One that fails is told by name, and nothing else changes."""
    (tmp_path / "plain_mechanism.py").write_text(MECHANISM, encoding="utf-8")
    (tmp_path / "heads_statistic.py").write_text(STATISTIC, encoding="utf-8")
    facts = tmp_path / "another_package-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: another-package\nVersion: 1\n", encoding="utf-8")
    (facts / "entry_points.txt").write_text(
        "[epsilons.mechanisms]\nplain = plain_mechanism\nworse = not_there\n\n"
        "[epsilons.statistics]\nheads = heads_statistic\n",
        encoding="utf-8",
    )
    paths = os.pathsep.join([str(ROOT / "src"), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    mechanism, statistic, neighbors, served, named, told = json.loads(done.stdout)
    assert mechanism
    assert statistic
    assert (neighbors, named) == ("absent", "plain")
    assert served
    assert len(told) == 1
    assert "'worse' of epsilons.mechanisms could not be loaded: ModuleNotFoundError" in told[0]
