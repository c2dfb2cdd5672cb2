"""The privacy axioms and the composition theorems: as arithmetic on promises, and as truths about random laws.

Soria-Comas et al. 2017, sections 4.4 and 4.5: sequential and parallel composition (Theorems 3 and 4), transformation
invariance and choice (Propositions 3 and 4). The same four hold for personalized DP.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epsilons.guarantee import (
    APART,
    INDIVIDUAL,
    KINDS,
    NANO,
    NO_PROMISE,
    PERSONALIZED,
    PUBLIC_PEOPLE,
    ROSTER_IS_PUBLIC,
    SEEDED,
    Covered,
    Guarantee,
    compose_all,
)
from epsilons.preferences import Roster

Law = NDArray[np.float64]

neighbours = st.sampled_from(["absent", "replace"])
# Small ones, so that two promises often have a level in common.
grants = st.one_of(st.none(), st.integers(1, 3), st.integers(1, 10**15))
levels_granted = st.lists(grants, max_size=4, unique=True)
caveats_said = st.lists(st.sampled_from([ROSTER_IS_PUBLIC, PUBLIC_PEOPLE, SEEDED]), max_size=3, unique=True)
kinds = st.sampled_from(KINDS)

Join = Callable[[Guarantee, Guarantee], Guarantee]
SAME_PEOPLE = Covered("the same")
#: Losses of the same people, or of different ones.
JOINS: tuple[Join, ...] = (Guarantee.choice, Guarantee.compose)


@st.composite
def guarantees(draw: st.DrawFn, neighbors: str | None = None, covers: Covered | None = SAME_PEOPLE) -> Guarantee:
    levels = draw(levels_granted)
    losses = tuple((g, None if g is None else draw(st.integers(0, g))) for g in levels)
    caveats = draw(caveats_said)
    where = neighbors or draw(neighbours)
    return Guarantee(where, losses, draw(kinds), tuple(caveats), draw(st.booleans()), covers)


@st.composite
def alike(draw: st.DrawFn, size: int) -> list[Guarantee]:
    """Several promises to the same people against the same neighbours, between which no step doubles anything."""
    where = draw(neighbours)
    return [draw(guarantees(where)) for _ in range(size)]


def about(group: int, guarantee: Guarantee) -> Guarantee:
    """The same promise to the people of a group, one for each level; no two groups have anyone in common."""
    levels = tuple(granted for granted, _ in guarantee.losses)
    people = tuple((group, place) for place in range(len(levels)))
    return replace(guarantee, covers=Covered("", levels, np.arange(len(levels)), people))


def disjoint(several: Iterable[Guarantee]) -> list[Guarantee]:
    """The same promises, each to people of its own."""
    return [about(group, guarantee) for group, guarantee in enumerate(several)]


def ways(several: list[Guarantee]) -> Iterator[tuple[Join, list[Guarantee]]]:
    """Every way to join promises, with what it may join: in parallel only those to different people."""
    for join in JOINS:
        yield join, several
    for join in (*JOINS, Guarantee.compose_parallel):
        yield join, disjoint(several)


def essence(guarantee: Guarantee) -> tuple[object, ...]:
    """All that a promise promises; what it says in words may come in another order, or more than once."""
    marks = {SEEDED, PUBLIC_PEOPLE} & set(guarantee.caveats)
    return guarantee.neighbors, dict(guarantee.losses), guarantee.kind, guarantee.imputes, marks


def loss(guarantee: Guarantee, granted: int | None) -> float:
    """In nano-epsilon; infinite for public people, 0 for a level that is not mentioned."""
    bound = dict(guarantee.losses).get(granted, 0)
    return math.inf if bound is None else bound


def levels_of(*several: Guarantee) -> set[int | None]:
    return {granted for guarantee in several for granted, _ in guarantee.losses}


def weaker(guarantee: Guarantee) -> int:
    return KINDS.index(guarantee.kind)


# Arithmetic on promises ----------------------------------------------------------------------------------------------


@given(guarantees())
def test_post_processing_keeps_the_promise_as_it_is(guarantee: Guarantee) -> None:
    assert guarantee.post_process() == guarantee
    assert guarantee.post_process().post_process() == guarantee


@given(alike(2))
def test_post_processing_may_come_before_or_after_everything_else(pair: list[Guarantee]) -> None:
    for join, (one, two) in ways(pair):
        assert join(one.post_process(), two.post_process()) == join(one, two).post_process()


@given(alike(2))
def test_a_choice_promises_the_larger_loss_and_the_weaker_kind(pair: list[Guarantee]) -> None:
    one, two = pair
    either = one.choice(two)
    for granted in levels_of(one, two):
        assert loss(either, granted) == max(loss(one, granted), loss(two, granted))
    assert weaker(either) == max(weaker(one), weaker(two))
    assert set(one.caveats) | set(two.caveats) <= set(either.caveats)
    assert either.imputes == (one.imputes and two.imputes)


@given(alike(2))
def test_one_after_the_other_the_losses_add_up(pair: list[Guarantee]) -> None:
    one, two = pair
    both = one.compose(two)
    for granted in levels_of(one, two):
        assert loss(both, granted) == loss(one, granted) + loss(two, granted)
    assert weaker(both) == max(weaker(one), weaker(two))
    assert set(one.caveats) | set(two.caveats) <= set(both.caveats)


@given(alike(2))
def test_side_by_side_the_larger_loss_counts_and_why_is_said(pair: list[Guarantee]) -> None:
    one, two = disjoint(pair)
    both = one.compose_parallel(two)
    for granted in levels_of(one, two):
        assert loss(both, granted) == max(loss(one, granted), loss(two, granted))
    assert both.losses == one.choice(two).losses
    assert weaker(both) == max(weaker(one), weaker(two))
    assert "sound only because the groups are defined by public facts" in both.caveats[-1]


@given(alike(3))
def test_the_order_and_the_grouping_do_not_matter(three: list[Guarantee]) -> None:
    for join, (a, b, c) in ways(three):
        assert essence(join(a, b)) == essence(join(b, a))
        assert essence(join(join(a, b), c)) == essence(join(a, join(b, c)))


@given(guarantees())
def test_choosing_between_two_alike_changes_nothing(guarantee: Guarantee) -> None:
    assert essence(guarantee.choice(guarantee)) == essence(guarantee)


@given(alike(3))
def test_a_choice_made_before_or_after_another_release_costs_the_same(three: list[Guarantee]) -> None:
    a, b, c = three
    assert essence(a.compose(b.choice(c))) == essence(a.compose(b).choice(a.compose(c)))


@given(alike(2), st.integers(0, NANO))
def test_whoever_loses_more_to_a_part_loses_no_less_to_the_whole(pair: list[Guarantee], more: int) -> None:
    for join, (one, two) in ways(pair):
        worse = replace(one, losses=tuple((g, None if e is None else e + more) for g, e in one.losses))
        for granted in levels_of(one, two):
            assert loss(join(worse, two), granted) >= loss(join(one, two), granted)


@given(alike(2))
def test_where_nobody_can_tell_who_is_meant_anyone_may_be_anyone(pair: list[Guarantee]) -> None:
    """Without a roster, somebody at one level of the first may be at any level of the second; and that is said."""
    one, two = (replace(guarantee, covers=None) for guarantee in pair)
    for join, together in ((Guarantee.choice, max), (Guarantee.compose, operator.add)):
        worst = join(one, two)
        for (granted, a), (granted_too, b) in itertools.product(one.losses, two.losses):
            if a is not None and b is not None:
                assert min(loss(worst, granted), loss(worst, granted_too)) >= together(a, b)
        for granted in levels_of(*pair):
            assert loss(worst, granted) >= loss(join(*pair), granted) >= loss(join(*disjoint(pair)), granted)
        assert (APART in worst.caveats) == all(guarantee.losses for guarantee in pair)


@given(guarantees(), guarantees())
def test_choice_costs_at_most_what_both_cost_and_at_least_either(one: Guarantee, two: Guarantee) -> None:
    """Whatever the neighbours and whoever is meant: the two are aligned first, which never lowers a loss."""
    unknown = [replace(guarantee, covers=None) for guarantee in (one, two)]
    for a, b in ([one, two], disjoint([one, two]), unknown):
        either, both = a.choice(b), a.compose(b)
        assert either.neighbors == both.neighbors
        for granted in levels_of(a, b):
            assert max(loss(a, granted), loss(b, granted)) <= loss(either, granted) <= loss(both, granted)


@given(guarantees(), guarantees(), guarantees())
def test_nothing_joined_with_individual_privacy_is_dp_again(exact: Guarantee, one: Guarantee, two: Guarantee) -> None:
    three = [replace(exact, kind=INDIVIDUAL), one, replace(two, kind=one.kind)]
    for join, (exact, one, two) in ways(three):
        for joined in (join(exact, one), join(one, exact), join(join(one, exact), two)):
            assert joined.kind == INDIVIDUAL
            assert "not DP" in str(joined)
            said = any("the weaker kind is all that remains" in caveat for caveat in joined.caveats)
            assert said == (one.kind == PERSONALIZED)


@given(st.integers(1, 4).flatmap(alike))
def test_a_whole_history_adds_up_and_names_the_first_release_that_was_not_dp(history: list[Guarantee]) -> None:
    whole = compose_all(history)
    for granted in levels_of(*history):
        assert loss(whole, granted) == sum(loss(part, granted) for part in history)
    assert weaker(whole) == max(weaker(part) for part in history)
    marks = [caveat for caveat in whole.caveats if caveat.startswith("Not DP since release")]
    kinds = [part.kind for part in history]
    first = [f"Not DP since release {kinds.index(INDIVIDUAL) + 1}."] if INDIVIDUAL in kinds else []
    assert marks == first == list(whole.caveats[: len(first)])


def test_the_kinds_stand_from_the_strongest_to_the_weakest() -> None:
    assert KINDS == (NO_PROMISE, PERSONALIZED, INDIVIDUAL)


# The truth behind it: two laws of an answer, on the data and on a neighbour ------------------------------------------


def loss_between(one: Law, other: Law) -> float:
    """Largest |ln P/Q|; infinite where only one of them is possible."""
    possible = (one > 0) | (other > 0)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(one[possible]) - np.log(other[possible])).max())


@st.composite
def laws(draw: st.DrawFn, outcomes: int = 4) -> Law:
    weights = np.array(draw(st.lists(st.integers(1, 1000), min_size=outcomes, max_size=outcomes)), float)
    law: Law = weights / weights.sum()
    return law


def promising(bound: float, person: str = "ann", granted: int = 1) -> Guarantee:
    """A promise to one person who granted 1, or more, at this loss, rounded up."""
    losses = ((granted * NANO, math.ceil(bound * NANO)),)
    return Guarantee("replace", losses, INDIVIDUAL, covers=Roster([person], [granted]).covered)


def allowed(guarantee: Guarantee, granted: int = 1) -> float:
    return loss(guarantee, granted * NANO) / NANO + 1e-9


@given(laws(), laws(), st.lists(laws(3), min_size=4, max_size=4))
def test_a_random_change_of_the_answer_loses_no_more(here: Law, there: Law, kernel: list[Law]) -> None:
    guarantee = promising(loss_between(here, there))
    step = np.stack(kernel)  # row x: what becomes of the answer x
    assert loss_between(here @ step, there @ step) <= allowed(guarantee.post_process())


@given(laws(), laws(), laws(), laws(), st.fractions(0, 1))
def test_a_coin_between_two_answers_loses_no_more_than_the_worse(
    here: Law, there: Law, here_too: Law, there_too: Law, coin: float
) -> None:
    guarantee = promising(loss_between(here, there)).choice(promising(loss_between(here_too, there_too)))
    p = float(coin)
    mixed = [p * first + (1 - p) * second for first, second in ((here, here_too), (there, there_too))]
    assert loss_between(*mixed) <= allowed(guarantee)


@given(laws(), laws(), st.lists(laws(3), min_size=4, max_size=4), st.lists(laws(3), min_size=4, max_size=4))
def test_two_answers_lose_no_more_than_the_sum_even_if_the_second_question_follows_the_first_answer(
    here: Law, there: Law, then_here: list[Law], then_there: list[Law]
) -> None:
    second = max(loss_between(a, b) for a, b in zip(then_here, then_there, strict=True))
    guarantee = promising(loss_between(here, there)).compose(promising(second))
    both = [(law[:, None] * np.stack(then)).ravel() for law, then in ((here, then_here), (there, then_there))]
    assert loss_between(*both) <= allowed(guarantee)


@given(laws(), laws(), laws(), laws())
def test_answers_about_different_people_lose_each_of_them_their_own(
    ann: Law, ann_replaced: Law, bob: Law, bob_replaced: Law
) -> None:
    """Replacing ann's record changes the law of the answer about her group alone."""
    about_ann = promising(loss_between(ann, ann_replaced))
    about_bob = promising(loss_between(bob, bob_replaced), "bob", 2)
    guarantee = about_ann.compose_parallel(about_bob)
    here = np.outer(ann, bob).ravel()
    assert loss_between(here, np.outer(ann_replaced, bob).ravel()) <= allowed(guarantee, 1)
    assert loss_between(here, np.outer(ann, bob_replaced).ravel()) <= allowed(guarantee, 2)


def test_the_sum_cannot_be_lowered() -> None:
    """Two coins that lose ln 3 each, together lose ln 9: what composition adds is really lost."""
    here, there = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    one = loss_between(here, there)
    for times in (2, 3, 4):
        both = [np.array([math.prod(p) for p in itertools.product(law, repeat=times)]) for law in (here, there)]
        assert abs(loss_between(*both) - times * one) < 1e-12
