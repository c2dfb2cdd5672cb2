"""What is promised, and how promises add up."""

import json
import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.errors import PlanError
from epsilons.guarantee import (
    APART,
    BY_PLACE,
    INDIVIDUAL,
    NANO,
    NO_PROMISE,
    PERSONALIZED,
    PUBLIC_PEOPLE,
    RELATION,
    ROSTER_IS_PUBLIC,
    SEEDED,
    Covered,
    Guarantee,
    compose_all,
    to_epsilon,
)

TENTH, FIFTH, ONE = NANO // 10, NANO // 5, NANO
ABSENT = Guarantee("absent", ((TENTH, TENTH), (ONE, FIFTH)))
IMPUTING = Guarantee("replace", ((TENTH, TENTH), (ONE, ONE)), imputes=True)
PLAIN_REPLACE = Guarantee("replace", ((TENTH, TENTH), (ONE, ONE)))


def test_epsilons_are_read_as_numbers_and_public_as_infinite() -> None:
    guarantee = Guarantee("absent", ((TENTH, TENTH), (None, None)))
    assert guarantee.epsilons == {0.1: 0.1, math.inf: math.inf}
    assert (to_epsilon(700_000_000), to_epsilon(None)) == (0.7, math.inf)


def test_losses_of_two_releases_about_the_same_people_add_up() -> None:
    covers = Covered("the same")
    one, two = replace(ABSENT, covers=covers), Guarantee("absent", ((ONE, TENTH), (2 * ONE, ONE)), covers=covers)
    both = one.compose(two)
    assert both.losses == ((TENTH, TENTH), (ONE, FIFTH + TENTH), (2 * ONE, ONE))
    assert both.neighbors == "absent"
    assert both.covers == covers
    assert APART not in both.caveats


def test_of_people_who_cannot_be_aligned_the_worst_is_said() -> None:
    """Who granted 1 to one release may be anyone in the other."""
    other = Guarantee("absent", ((ONE, TENTH), (2 * ONE, ONE)))
    for one in (ABSENT, replace(ABSENT, covers=Covered("others")), replace(ABSENT, covers=Covered("these"))):
        both = one.compose(replace(other, covers=Covered("these") if one.covers != Covered("these") else None))
        assert both.losses == ((TENTH, TENTH + ONE), (ONE, FIFTH + ONE), (2 * ONE, ONE + FIFTH))
        assert both.covers is None
        assert APART in str(both)
        assert one.choice(other).losses == ((TENTH, ONE), (ONE, ONE), (2 * ONE, ONE))


@pytest.mark.parametrize("first", [[0.3] * 100, eps.Roster(range(100), 0.3)])
@pytest.mark.parametrize("second", [[0.7] * 100, [0.7] * 99, eps.Roster(range(100), 0.7)])
def test_who_paid_under_two_levels_has_paid_both(first: Any, second: Any) -> None:
    """Two means about the same people, at .3 and at .7, cost each of them 1."""
    one, two = (eps.mean([1.0] * len(given), given, bounds=(0, 2)).guarantee for given in (first, second))
    for both in (one.compose(two), two.compose(one), compose_all([one, two])):
        assert set(both.epsilons.values()) == {1.0}
    assert set(one.choice(two).epsilons.values()) == {0.7}
    assert (BY_PLACE in one.compose(one).caveats) == isinstance(first, list)


def test_everyone_adds_up_what_they_lost_whatever_the_order() -> None:
    """Named people are found again, in any order, and on a roster that only some of them are on."""
    first, second = eps.Roster("abcd", [0.1, 0.1, 1, eps.PUBLIC]), eps.Roster("cae", [0.1, 1, 1])
    one, two = (eps.count([1] * len(who), who, mechanism="exponential").guarantee for who in (first, second))
    both = one.compose(two)
    assert both.epsilons == {0.1: 0.1, 1.0: 1.1, math.inf: math.inf}
    three = both.compose(eps.count([1], eps.Roster("b", 0.5), mechanism="exponential").guarantee)
    assert three.epsilons == {0.5: 0.6, 1.0: 1.1, math.inf: math.inf}
    assert three.covers is not None
    assert APART not in three.caveats
    assert one.choice(two).epsilons == {0.1: 0.1, 1.0: 1.0, math.inf: math.inf}


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["1", "2"]),
        np.array(["1", "2"], object),
        pa.array(["1", "2"]),
        pa.chunked_array([["1"], ["2"]]),
        pa.array(["1", "2"]).dictionary_encode(),
        pd.Series(["1", "2"], dtype="category"),
        pl.Series(["1", "2"]),
        iter(["1", "2"]),
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_an_id_is_the_same_person_whatever_holds_it(ids: Any) -> None:
    """Otherwise two releases about one person would be about two, and a strict choice would become the default."""
    held = eps.Roster(ids, {"1": 0.3, "2": 0.7}, default=5.0)
    assert held.people == ("1", "2")
    assert held.levels.grants == (3 * TENTH, 7 * TENTH)
    one, two = (
        eps.count([1, 0], who, mechanism="minimum").guarantee for who in (held, eps.Roster(["2", "1"], [0.3, 0.7]))
    )
    assert one.compose(two).epsilons == {0.7: 0.6}


@pytest.mark.parametrize(
    "ids", [["a", None], [math.nan, 1], [1, "1"], [True, False], [b"a", b"b"], [("a",), ("b",)], [[1], [2]]]
)
def test_an_id_is_text_or_a_whole_number(ids: Any) -> None:
    with pytest.raises(eps.PreferenceError, match="whole numbers or text"):
        eps.Roster(ids, 0.5)


def test_numbers_and_text_are_not_told_apart_silently() -> None:
    """1 and "1" may be one person: promises say the worst, and no default steps in."""
    one, two = (eps.count([1, 0], eps.Roster(who, [0.3, 0.7]), mechanism="minimum").guarantee for who in ([1, 2], "12"))
    assert one.compose(two).epsilons == {0.3: 0.6, 0.7: 0.6}
    with pytest.raises(PlanError, match="may be about the same people"):
        one.compose_parallel(two)
    for asked in ({1: 0.05, 2: 0.05}, eps.Preferences({1: 0.05, 2: 0.05}, default=1.0)):
        with pytest.raises(eps.PreferenceError, match="text here and whole numbers there"):
            eps.Roster("12", asked, default=1.0)
    with pytest.raises(eps.PreferenceError, match="a roster already"):
        eps.Roster("21", eps.Roster("12", [0.05, 1.0]))


def test_a_roster_stays_as_it_was_made() -> None:
    roster = eps.Roster("ab", [0.1, 1.0])
    with pytest.raises(FrozenInstanceError):
        roster.codes = roster.codes[::-1]  # type: ignore[misc]


def test_public_stays_public_whatever_comes_after() -> None:
    none, some = Guarantee("absent", ((ONE, None),)), Guarantee("absent", ((ONE, TENTH),))
    assert none.compose(some).losses == some.compose(none).losses == ((ONE, None),)


def test_every_release_knows_whom_it_is_about() -> None:
    """Asked by a plan, of a function of one's own, and of a table: there until somebody joins, leaves or changes."""
    roster = eps.Roster("abc", [0.1, 1.0, 1.0])
    planned = eps.plan("count", roster).ask([1, 0, 1])
    alone = eps.individually(sum, [1, 2, 3], roster, sensitivity=2, step=1)
    assert planned.guarantee.covers == alone.guarantee.covers == roster.covered
    table = pa.table({"id": ["a", "b", "c"], "x": [1, 0, 1]})
    with eps.Dataset(
        table, person="id", preferences={"a": 0.1, "b": 1.0, "c": 1.0}, ledger="memory", ceiling=1e6
    ) as people:
        first, second = (people.count(column, share=0.1).guarantee for column in (None, "x"))
        people.set_level({"b": 0.5})
        third = people.count("x", share=0.1, fresh=True).guarantee
    assert first.covers == second.covers != third.covers
    assert APART not in first.compose(second).caveats
    assert APART in second.compose(third).caveats


def test_one_roster_serves_several_calls() -> None:
    roster = eps.Roster(["ann", "bob"], [0.1, 1.0])
    parts = [eps.count([0, 1], roster, share=share, mechanism="exponential").guarantee for share in (0.25, 0.75)]
    assert parts[0].compose(parts[1]).epsilons == {0.1: 0.1, 1.0: 1.0}
    stored = [Guarantee.from_dict(json.loads(json.dumps(part.to_dict()))) for part in parts]
    assert stored[0].compose(parts[1]).epsilons == stored[0].compose(stored[1]).epsilons == {0.1: 0.1, 1.0: 1.0}


def test_what_the_first_release_of_epsilons_wrote_is_read_and_safe() -> None:
    old = {"kind": PERSONALIZED, "neighbors": "absent", "losses": [[TENTH, TENTH], [ONE, ONE]], "caveats": []}
    one = Guarantee.from_dict({**old, "imputes": False, "rounded": True})
    assert one.compose(one).epsilons == {0.1: 1.1, 1.0: 2.0}


def test_the_same_people_are_no_disjoint_groups() -> None:
    """Also where nobody can tell: people without ids, and promises out of a file."""
    first, other = eps.Roster("abc", [0.1, 0.5, 0.5]), eps.Roster("cde", [0.1, 0.5, 0.5])
    named, shared, unnamed, again = (
        eps.count([1, 0, 1], who, mechanism="exponential").guarantee
        for who in (first, other, [0.1, 0.5, 0.5], [0.5, 0.5, 0.1])
    )
    stored = Guarantee.from_dict(named.to_dict())
    for one, two in (
        (named, named),
        (named, shared),
        (unnamed, again),
        (named, unnamed),
        (stored, shared),
        (ABSENT, ABSENT),
    ):
        with pytest.raises(PlanError, match="may be about the same people"):
            one.compose_parallel(two)


def test_public_people_stay_public() -> None:
    public = Guarantee("absent", ((None, None),), caveats=(ROSTER_IS_PUBLIC, PUBLIC_PEOPLE))
    both = ABSENT.compose(public)
    assert both.losses == ((TENTH, TENTH), (ONE, FIFTH), (None, None))
    assert both.caveats == (ROSTER_IS_PUBLIC, PUBLIC_PEOPLE, APART)


def test_disjoint_groups_lose_to_one_and_say_why_that_holds() -> None:
    groups = [
        eps.count([1, 0], eps.Roster(who, [0.1, 1.0]), share=share).guarantee for who, share in (("ab", 1), ("cd", 0.5))
    ]
    both = groups[0].compose_parallel(groups[1])
    assert both.epsilons == groups[0].epsilons
    assert "sound only because the groups are defined by public facts of the roster" in str(both)


def test_against_a_replacement_the_loss_doubles() -> None:
    other = ABSENT.with_neighbors("replace")
    assert other.neighbors == "replace"
    assert other.losses == ((TENTH, 2 * TENTH), (ONE, 2 * FIFTH))
    assert Guarantee("absent", ((None, None),)).with_neighbors("replace").losses == ((None, None),)
    assert ABSENT.with_neighbors("absent") is ABSENT


def test_the_way_back_is_free_for_mechanisms_that_impute_only() -> None:
    assert IMPUTING.with_neighbors("absent").losses == IMPUTING.losses
    with pytest.raises(PlanError) as caught:
        PLAIN_REPLACE.with_neighbors("absent")
    assert "This promise against 'replace' says nothing against 'absent'." in str(caught.value)
    assert "Try: ask again with neighbors='absent'" in str(caught.value)


def test_mixed_neighbours_compose_against_absence_where_all_impute() -> None:
    one, two = (replace(each, covers=Covered("the same")) for each in (ABSENT, IMPUTING))
    for both in (one.compose(two), two.compose(one)):
        assert both.neighbors == "absent"
        assert both.losses == ((TENTH, 2 * TENTH), (ONE, FIFTH + ONE))
        assert not both.imputes


def test_mixed_neighbours_compose_against_replacement_otherwise() -> None:
    one, two = (replace(each, covers=Covered("the same")) for each in (ABSENT, PLAIN_REPLACE))
    for both in (one.compose(two), two.compose(one)):
        assert both.neighbors == "replace"
        assert both.losses == ((TENTH, 3 * TENTH), (ONE, 2 * FIFTH + ONE))


def test_of_two_kinds_the_weaker_remains_and_says_so() -> None:
    weak = Guarantee("absent", ((TENTH, TENTH),), kind=INDIVIDUAL)
    for both in (ABSENT.compose(weak), weak.compose(ABSENT), ABSENT.choice(weak)):
        assert both.kind == INDIVIDUAL
        assert "the weaker kind is all that remains" in str(both)
        assert "not DP" in str(both)
    assert ABSENT.compose(ABSENT).kind == PERSONALIZED
    assert "weaker" not in str(ABSENT.compose(ABSENT))


def test_public_data_does_not_weaken_a_promise() -> None:
    public = Guarantee("absent", ((None, None),), kind=NO_PROMISE)
    assert public.compose(ABSENT).kind == ABSENT.compose(public).kind == PERSONALIZED


def test_caveats_survive_composition_once_each() -> None:
    seeded = Guarantee("absent", ((TENTH, TENTH),), caveats=(SEEDED, ROSTER_IS_PUBLIC))
    both = ABSENT.compose(seeded).compose(seeded)
    assert sorted(both.caveats) == sorted((SEEDED, ROSTER_IS_PUBLIC, APART))
    assert "NOT PRIVATE" in str(both)


@pytest.mark.parametrize(
    "guarantee", [ABSENT, IMPUTING, PLAIN_REPLACE, Guarantee("absent", ((None, None),), NO_PROMISE)]
)
def test_a_promise_always_names_its_neighbours_and_caveats(guarantee: Guarantee) -> None:
    text = str(guarantee)
    assert RELATION[guarantee.neighbors] in text
    assert guarantee.kind in text
    assert all(caveat in text for caveat in guarantee.caveats)
    assert ROSTER_IS_PUBLIC in text
    for granted, loss in guarantee.epsilons.items():
        assert math.isinf(granted) or f"{loss:.6g} to those who granted {granted:.6g}" in text


def test_a_promise_survives_json() -> None:
    rich = Guarantee("replace", ((TENTH, 1), (None, None)), INDIVIDUAL, (ROSTER_IS_PUBLIC, "<b>"), imputes=True)
    for guarantee in (ABSENT, IMPUTING, rich):
        assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict(), allow_nan=False))) == guarantee


@pytest.mark.parametrize("neighbors", ["add", "", None, "Absent"])
def test_unknown_neighbours_are_refused(neighbors: str) -> None:
    with pytest.raises(PlanError) as caught:
        Guarantee(neighbors, ())
    assert f"Unknown neighbours {neighbors!r}." in str(caught.value)
    assert "Try: neighbors='absent'" in str(caught.value)
    with pytest.raises(PlanError):
        ABSENT.with_neighbors(neighbors)


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_a_release_promises_what_was_asked(neighbors: str) -> None:
    release = eps.mean([1, 2, 3], [0.1, 1, eps.PUBLIC], bounds=(0, 4), neighbors=neighbors)
    assert release.guarantee.neighbors == neighbors
    assert RELATION[neighbors] in str(release.guarantee)
    assert PUBLIC_PEOPLE in release.guarantee.caveats
    for granted, loss in release.guarantee.epsilons.items():
        assert loss <= granted
        assert math.isinf(granted) or release.charges[granted] == loss


def test_individual_privacy_leaves_a_permanent_mark() -> None:
    """Everything said of a history from the first release that is not DP on says since when."""
    fine = Guarantee(neighbors="absent", losses=((NANO, NANO // 2),))
    weak = Guarantee(neighbors="absent", losses=((NANO, NANO // 4),), kind=INDIVIDUAL)
    assert compose_all([fine, fine]).kind == PERSONALIZED
    assert not any("Not DP" in caveat for caveat in compose_all([fine, fine]).caveats)
    whole = compose_all([fine, fine, weak, fine, weak])
    assert whole.kind == INDIVIDUAL
    assert whole.caveats[0] == "Not DP since release 3."
    assert whole.epsilons == {1.0: 2.0}
    assert "Not DP since release 3." in str(whole)
    with pytest.raises(PlanError, match="nothing to compose"):
        compose_all([])


def test_rounded_preferences_compose_with_exact_ones() -> None:
    """Somebody whose grant was rounded down to a rung in one release has lost what the rung lost."""
    grants = {person: 0.001 * (person + 1) for person in range(300)}
    rounded = eps.count([1] * 300, eps.Roster(grants, grants), mechanism="exponential").guarantee
    exact = eps.count([1] * 100, eps.Roster(range(100), grants), mechanism="exponential").guarantee
    rung = max(e for e in rounded.epsilons if e <= 0.077)
    for both in (rounded.compose(exact), exact.compose(rounded)):
        assert both.epsilons[0.077] == pytest.approx(0.077 + rounded.epsilons[rung])
    assert Guarantee.from_dict(json.loads(json.dumps(rounded.to_dict()))) == rounded


def test_many_levels_are_told_by_their_number_and_range() -> None:
    losses = tuple((level * TENTH, TENTH // 2 * min(level, 50)) for level in range(1, 101))
    many = Guarantee("absent", (*losses, (None, None)))
    assert "a loss of at most 0.05 to 2.5 by level (100 levels, granted 0.1 to 10)." in str(many)
    assert len(many.to_dict()["losses"]) == 101
    even = Guarantee("absent", tuple((level * TENTH, TENTH) for level in range(1, 8)))
    assert "a loss of at most 0.1 by level (7 levels, granted 0.1 to 0.7)." in str(even)


@pytest.mark.parametrize("data", [{"a": 1}, {}, {"losses": 3}, [], None, {"losses": [[1]]}])
def test_what_is_no_guarantee_is_refused_in_words(data: Any) -> None:
    with pytest.raises(eps.PlanError, match="This is not a guarantee"):
        Guarantee.from_dict(data)


def test_an_answer_may_be_composed_as_its_guarantee() -> None:
    one, other = (eps.count([1.0, 0.0], [0.5, 0.5]) for _ in range(2))
    assert one.guarantee.compose(other) == one.guarantee.compose(other.guarantee)
    assert one.guarantee.choice(other) == one.guarantee.choice(other.guarantee)
    for join in (one.guarantee.compose, one.guarantee.choice, one.guarantee.compose_parallel):
        with pytest.raises(eps.PlanError, match="'float' has no guarantee"):
            join(1.0)
