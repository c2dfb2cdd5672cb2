"""Promises add up in any order, and a composed promise never says less than its parts lost."""

import json
from collections.abc import Callable
from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from epsilons.guarantee import (
    KINDS,
    NANO,
    PUBLIC_PEOPLE,
    ROSTER_IS_PUBLIC,
    SEEDED,
    Guarantee,
    compose_all,
    to_epsilon,
)
from epsilons.preferences import Roster, roster_of

grants = st.one_of(st.none(), st.integers(1, 10**15))


@st.composite
def guarantees(draw: st.DrawFn, neighbors: str | None = None) -> Guarantee:
    levels = draw(st.lists(grants, max_size=4, unique=True))
    losses = tuple((g, None if g is None else draw(st.integers(0, g))) for g in levels)
    caveats = draw(st.lists(st.sampled_from([ROSTER_IS_PUBLIC, PUBLIC_PEOPLE, SEEDED]), max_size=3, unique=True))
    return Guarantee(
        neighbors or draw(st.sampled_from(["absent", "replace"])),
        losses,
        draw(st.sampled_from(KINDS)),
        tuple(caveats),
        draw(st.booleans()),
    )


def same(one: Guarantee, two: Guarantee) -> bool:
    """Alike but for the order of what is said."""
    return (one.neighbors, dict(one.losses), one.kind, one.imputes, {SEEDED} & set(one.caveats)) == (
        two.neighbors,
        dict(two.losses),
        two.kind,
        two.imputes,
        {SEEDED} & set(two.caveats),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Guarantee, dict[str, tuple[int | None, int | None]]]]:
    """Releases about some of six people, and (grant, loss) of each of them: named, unnamed or out of a file."""
    made = []
    for _ in range(draw(st.integers(1, 4))):
        named = draw(st.sampled_from([True, True, False]))
        # People without ids are known by their place.
        people = (draw(st.permutations("abcdef")) if named else list("abcdef"))[: draw(st.integers(0, 6))]
        grant_of = {person: draw(st.sampled_from([1, 2, 5, None])) for person in people}
        loss_of = {grant: grant and draw(st.integers(0, grant)) for grant in (1, 2, 5, None)}
        epsilons = [to_epsilon(grant) for grant in grant_of.values()]
        covers = (Roster(people, epsilons) if named else roster_of(epsilons)).covered
        losses = tuple((grant, loss_of[grant]) for grant in covers.grants)
        neighbors = draw(st.sampled_from(["absent", "absent", "replace"]))
        one = Guarantee(neighbors, losses, covers=draw(st.sampled_from([covers, covers, None])))
        one = Guarantee.from_dict(one.to_dict()) if draw(st.integers(0, 3)) == 0 else one
        made.append((one, {person: (grant, loss_of[grant]) for person, grant in grant_of.items()}))
    return made


def holds(composed: Guarantee, history: Any, join: Callable[[list[int]], int]) -> bool:
    """Whether every person finds what they lost to all under the most open of their grants."""
    said = dict(composed.losses)
    for person in "abcdef":
        parts = [(one.neighbors, *who[person]) for one, who in history if person in who]
        granted = [grant for _, grant, _ in parts if grant is not None]
        if len(granted) < len(parts) or not parts:
            continue  # public in one of them, or never asked
        lost = join([(loss or 0) * (1 if neighbors == composed.neighbors else 2) for neighbors, _, loss in parts])
        bound = said.get(max(granted), 0)
        if bound is not None and bound < lost:
            return False
    return True


@given(histories())
def test_nobody_lost_more_than_the_whole_history_says(history: Any) -> None:
    """Person by person, the slow way, whoever was named and however the rosters were ordered."""
    parts = [one for one, _ in history]
    assert holds(compose_all(parts), history, sum)
    assert holds(reduce(Guarantee.choice, parts), history, max)


def test_adding_by_level_is_caught() -> None:
    """The planted bug: two levels of the same people side by side, as if they were two groups."""
    who = Roster("ab", 1e-9).covered, Roster("ab", 2e-9).covered
    one, two = (Guarantee("absent", ((grant, grant),), covers=covers) for grant, covers in enumerate(who, 1))
    history = [(one, dict.fromkeys("ab", (1, 1))), (two, dict.fromkeys("ab", (2, 2)))]
    assert holds(one.compose(two), history, sum)
    assert not holds(Guarantee("absent", ((1, 1), (2, 2))), history, sum)
    assert not holds(Guarantee("absent", ((1, 1), (2, 2)), covers=who[0]), history, sum)


@given(guarantees(), guarantees())
def test_the_order_of_two_does_not_matter(one: Guarantee, two: Guarantee) -> None:
    assert same(one.compose(two), two.compose(one))
    assert same(one.choice(two), two.choice(one))


@given(st.sampled_from(["absent", "replace"]), st.data())
def test_the_grouping_of_three_does_not_matter(neighbors: str, data: st.DataObject) -> None:
    a, b, c = (data.draw(guarantees(neighbors)) for _ in range(3))
    assert same(a.compose(b).compose(c), a.compose(b.compose(c)))
    assert same(a.choice(b).choice(c), a.choice(b.choice(c)))


@given(guarantees(), guarantees(), guarantees())
def test_whatever_the_neighbours_no_loss_is_lost(a: Guarantee, b: Guarantee, c: Guarantee) -> None:
    """Grouping may then cost a factor (a step to "replace" doubles), but never hides what a part has lost."""
    for whole in (a.compose(b).compose(c), a.compose(b.compose(c))):
        losses = dict(whole.losses)
        for part in (a, b, c):
            if part.neighbors == "replace" and whole.neighbors == "absent":
                assert part.imputes
        for granted in losses:
            parts = [dict(part.losses).get(granted, 0) for part in (a, b, c)]
            if granted is None:
                assert losses[granted] is None
            else:
                doubled = [
                    loss * (2 if part.neighbors == "absent" and whole.neighbors == "replace" else 1)
                    for part, loss in zip((a, b, c), parts, strict=True)
                    if loss is not None
                ]
                assert (losses[granted] or 0) >= sum(doubled)
        assert whole.kind == max((a.kind, b.kind, c.kind), key=KINDS.index)
        assert (SEEDED in whole.caveats) == any(SEEDED in part.caveats for part in (a, b, c))


@given(guarantees(), guarantees())
def test_one_of_two_is_never_worse_than_both(one: Guarantee, two: Guarantee) -> None:
    both, either = dict(one.compose(two).losses), dict(one.choice(two).losses)
    assert all(a is None or (b is not None and a <= b) for a, b in ((either[g], both[g]) for g in both))


@given(guarantees())
def test_json_and_back(guarantee: Guarantee) -> None:
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict(), allow_nan=False))) == guarantee


@given(guarantees())
def test_levels_come_in_order_and_nothing_is_added_to_nobody(guarantee: Guarantee) -> None:
    nothing = Guarantee(guarantee.neighbors, (), guarantee.kind, (), guarantee.imputes)
    composed = guarantee.compose(nothing)
    assert dict(composed.losses) == dict(guarantee.losses)
    order = [NANO**9 if g is None else g for g, _ in composed.losses]
    assert order == sorted(order)
