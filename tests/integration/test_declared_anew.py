"""Figure 14: the same people, declared anew in every way we know, have no budget but the one that they spent."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epsilons.ledger import identity, registration, roster
from epsilons.ledger.places import Places
from epsilons.ledger.replay import Replay
from support.anew import ATTEMPTS, NAMES, NUMBERS, Attempt, Outcome, World, make_world, outcome

#: What a machine of its own is told: its user's state.
Restore = Callable[[str], World]


@pytest.fixture(scope="module")
def restore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restore]:
    """A world in which everything is spent, as often as it is needed: made once, and put back at its place."""
    made: dict[str, tuple[World, Path]] = {}
    with pytest.MonkeyPatch.context() as patch:

        def put_back(kind: str) -> World:
            if kind not in made:
                root, kept = tmp_path_factory.mktemp(kind) / "world", tmp_path_factory.mktemp(kind) / "kept"
                patch.setenv("XDG_STATE_HOME", str(root / "state"))
                made[kind] = make_world(root, NAMES if kind == "names" else NUMBERS), kept
                shutil.copytree(root, kept, symlinks=True)
            world, kept = made[kind]
            patch.setenv("XDG_STATE_HOME", str(world.root / "state"))
            shutil.rmtree(world.root)
            shutil.copytree(kept, world.root, symlinks=True)
            return world

        yield put_back


def find(name: str) -> Attempt:
    (found,) = (attempt for attempt in ATTEMPTS if attempt.name == name)
    return found


def try_one(restore: Restore, attempt: Attempt) -> Outcome:
    return outcome(attempt.run, restore(attempt.ids))


#: A third of them, and none in another process, is quick enough for every run.
SHORT = [attempt for attempt in ATTEMPTS[::3] if "process" not in attempt.name]


def test_there_are_as_many_ways_as_were_promised() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS) >= 60


@pytest.mark.parametrize("attempt", SHORT, ids=[attempt.name for attempt in SHORT])
def test_no_budget_starts_anew(restore: Restore, attempt: Attempt) -> None:
    found = try_one(restore, attempt)
    assert attempt.held(found), found


# A table that cannot fail shows nothing -----------------------------------------------------------------------------


@contextlib.contextmanager
def forgetful_roster(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Who moves to another cohort comes there with nothing spent; and the recount, which would see it, looks away."""
    honest, recount = roster._Cohorts.find_target, Replay._move
    patch.setattr(roster._Cohorts, "find_target", lambda cohorts, _origin, new: honest(cohorts, None, new))
    patch.setattr(Replay, "_move", lambda replay, group: recount(replay, group)[1:] * 2)
    yield


@contextlib.contextmanager
def one_spelling_only(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ids have a normal form as they were written first; in any other spelling they are left as they are."""

    def normalise(ids: pa.Array) -> pa.Array:
        pairs = zip(ids.to_pylist(), identity.normalise(ids).to_pylist(), strict=True)
        return pa.array([normal if written in NAMES else written for written, normal in pairs], ids.type)

    patch.setattr("epsilons.dataset.preferences.normalise", normalise)
    yield


@contextlib.contextmanager
def no_memory_of_places(patch: pytest.MonkeyPatch) -> Iterator[None]:
    patch.setattr(Places, "_read", lambda _: {})
    yield


@contextlib.contextmanager
def newcomers_unasked(patch: pytest.MonkeyPatch) -> Iterator[None]:
    patch.setattr(registration, "_object_to_newcomers", lambda *_given: ())
    yield


@contextlib.contextmanager
def any_unit(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The column of ids is no term, and confirmed newcomers are let in: as it was before registrations."""
    patch.setattr(registration, "_object_to_unit", lambda *_given: ())
    patch.setattr(registration, "_object_to_newcomers", lambda *_given: ())
    yield


@contextlib.contextmanager
def loosened_in_silence(patch: pytest.MonkeyPatch) -> Iterator[None]:
    honest = registration.by_source
    patch.setattr(registration, "by_source", lambda dataset, settled, _loosen: honest(dataset, settled, True))
    patch.setattr(registration.Settled, "limit", lambda _self, asked, *_others: asked)
    yield


@pytest.mark.parametrize(
    ("planted", "name"),
    [
        (forgetful_roster, "withdrawn and back"),
        (one_spelling_only, "two people in capitals"),
        (no_memory_of_places, "the ledger deleted, then registered"),
        (no_memory_of_places, "a second ledger"),
        (newcomers_unasked, "everyone in full width"),
        (any_unit, "another column of texts"),
        (loosened_in_silence, "everyone more by the source"),
    ],
)
def test_a_fault_is_seen(restore: Restore, planted: Any, name: str) -> None:
    attempt = find(name)
    with pytest.MonkeyPatch.context() as patch, planted(patch):
        found = try_one(restore, attempt)
    assert not attempt.held(found)
    assert found.said is None
    assert found.left > 0


@pytest.mark.soak
@pytest.mark.figure("figure_14")
def test_all_of_them_in_one_run(restore: Restore, record_property: Callable[[str, Any], None]) -> None:
    failed = {attempt.name: found for attempt in ATTEMPTS if not attempt.held(found := try_one(restore, attempt))}
    assert not failed
    record_property("size", len(ATTEMPTS))
