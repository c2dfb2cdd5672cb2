"""Who asked for what: how preferences are read, and how they become levels."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import epsilons as eps
from epsilons.errors import PreferenceError
from epsilons.guarantee import NANO, to_epsilon
from epsilons.preferences import LADDER, MAX_LEVELS, Levels, count_codes, count_some, roster_of, to_nano

CHUNK = 1 << 18


# One number ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "nano"),
    [
        (0.7, 700_000_000),
        (0.1, 100_000_000),
        (0.29, 290_000_000),
        (1.1, 1_100_000_000),
        (1, NANO),
        (1e-9, 1),
        (1.999e-9, 1),
        (0.123456789999, 123_456_789),
        (1e6, 10**15),
        (np.nextafter(0.7, 0), 699_999_999),
        (math.inf, None),
    ],
)
def test_an_epsilon_reads_as_the_decimal_it_prints_and_rounds_down(epsilon: float, nano: int | None) -> None:
    assert to_nano(epsilon) == nano


def test_every_hundredth_is_exact() -> None:
    assert [to_nano(k / 100) for k in range(1, 1001)] == [k * NANO // 100 for k in range(1, 1001)]


WAYS_IN: dict[str, Callable[[float], object]] = {
    "one": to_nano,
    "list": lambda epsilon: roster_of([0.5, epsilon, 1.0]),
    "late": lambda epsilon: roster_of(np.append(np.full(CHUNK + 5, 0.5), epsilon)),
    "ladder": lambda epsilon: roster_of(np.append(np.linspace(0.1, 1, 1000), epsilon)),
    "everyone": lambda epsilon: eps.count([1, 0], epsilon),
    "mapping": lambda epsilon: eps.Preferences({"ann": epsilon}).assign(["ann"]),
    "default": lambda epsilon: eps.Preferences([0.5, None], default=epsilon),
    "level": lambda epsilon: eps.Preferences.from_levels(["a"], {"a": epsilon}),
}


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [
        (0.0, "An epsilon of 0 is not allowed. An epsilon is larger than zero"),
        (-0.0, "larger than zero"),
        (-1.0, "An epsilon of -1 is not allowed."),
        (-math.inf, "An epsilon of -inf is not allowed."),
        (math.nan, "A person has no preference (NaN or missing). A default applies only if you give one."),
        (1e6 + 1, "A finite epsilon is at most 1,000,000. Try: an infinite one"),
        (1e300, "A finite epsilon is at most 1,000,000."),
        (1e-10, "rounds down to nothing. The smallest epsilon is a billionth."),
        (5e-324, "rounds down to nothing."),
    ],
)
@pytest.mark.parametrize("way", WAYS_IN)
def test_an_epsilon_that_nobody_can_grant_is_refused(epsilon: float, text: str, way: str) -> None:
    with pytest.raises(PreferenceError) as caught:
        WAYS_IN[way](epsilon)
    assert text in str(caught.value)
    assert caught.value.code == "preference"
    assert "Try: " in str(caught.value)


def test_two_zeros_and_a_negative_number_do_not_loop() -> None:
    with pytest.raises(PreferenceError, match="larger than zero"):
        roster_of([-1.0, 0.0, -0.0])


# Many ---------------------------------------------------------------------------------------------------------------


def test_levels_ascend_and_public_comes_last() -> None:
    roster = roster_of([1.0, eps.PUBLIC, 0.1, 1.0, 0.5])
    assert roster.levels == Levels((100_000_000, 500_000_000, NANO, None), (1, 1, 2, 1))
    assert roster.codes.tolist() == [2, 3, 0, 2, 1]
    assert roster.levels.size == len(roster) == 5
    assert (roster.levels.smallest, roster.levels.largest) == (100_000_000, NANO)
    assert roster.levels.mean == 650_000_000
    assert not roster.levels.all_public


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8, np.int16, object, list, tuple])
def test_any_array_of_numbers_serves(kind: type) -> None:
    given = [2, 1, 2, 3]
    epsilons = kind(given) if kind in (list, tuple) else np.array(given, kind)
    assert roster_of(epsilons).levels == Levels((NANO, 2 * NANO, 3 * NANO), (1, 2, 1))


def test_a_strided_array_serves() -> None:
    epsilons = np.repeat([0.1, 0.2], 10).reshape(2, 10).T
    assert roster_of(epsilons[:, 1]).levels.sizes == (10,)
    assert roster_of(np.arange(1.0, 9.0)[::-2]).levels.grants == tuple(k * NANO for k in (2, 4, 6, 8))


def test_one_number_stands_for_everyone() -> None:
    assert roster_of(0.5, people=3).levels == Levels((NANO // 2,), (3,))
    assert eps.count([1, 0, 1], 0.5).charges == {0.5: 0.5}
    assert eps.count([1, 0, 1], eps.PUBLIC).value == 2
    with pytest.raises(PreferenceError, match=r"unknown number of people.*\[0.5\] \* 1000"):
        roster_of(0.5)


def test_nobody_is_a_roster_too() -> None:
    roster = roster_of([])
    assert (roster.levels.grants, roster.levels.sizes, len(roster)) == ((), (), 0)


def test_epsilons_that_round_down_to_one_level_are_one_level() -> None:
    roster = roster_of([0.5, 0.5000000001, 0.5000000009, 0.500000001])
    assert roster.levels == Levels((500_000_000, 500_000_001), (3, 1))
    assert roster.codes.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("epsilons", "text"),
    [
        (["strict", "open"], "Epsilons are not numbers."),
        ([1j], "Epsilons are not numbers."),
        ([True, False], "Epsilons are not numbers."),
        (np.array(["2020-01-01"], "datetime64[D]"), "Epsilons are not numbers."),
        ([Decimal(1)], "Epsilons are not numbers."),
        ([[0.1], 0.2], "Epsilons are not numbers."),
        ({"ann": 1}, "Epsilons are not numbers."),
        (None, "Epsilons are not numbers."),
        ([[0.1, 0.2]], "Epsilons come as a table of 2 dimensions. One epsilon per person."),
        ([None, 0.1], "A person has no preference"),
        ([10**400, 1], "Epsilons are not numbers."),
    ],
)
def test_epsilons_that_are_not_a_list_of_numbers_are_refused(epsilons: object, text: str) -> None:
    with pytest.raises(PreferenceError) as caught:
        roster_of(epsilons)
    assert text in str(caught.value)
    assert "Try: " in str(caught.value)


# By person, by default, by name -------------------------------------------------------------------------------------


def test_preferences_by_person_are_found_by_id() -> None:
    asked = eps.Preferences({"ann": 0.1, "bob": eps.PUBLIC, "cy": 0.1})
    roster = asked.assign(["bob", "cy", "ann", "cy"])
    assert roster.levels == Levels((NANO // 10, None), (3, 1))
    assert roster.codes.tolist() == [1, 0, 0, 0]


def test_preferences_by_person_need_people() -> None:
    asked = eps.Preferences({"ann": 0.1})
    with pytest.raises(PreferenceError, match=r"by person, and no people were named.*one id per value"):
        eps.count([1], asked)
    with pytest.raises(PreferenceError, match="whole numbers or text"):
        asked.assign([["ann"]])


def test_a_default_applies_only_if_given() -> None:
    for asked in ({"ann": 0.1}, {"ann": 0.1, "bob": None}, {"ann": 0.1, "bob": math.nan}):
        with pytest.raises(PreferenceError, match="A default applies only if you give one"):
            eps.Preferences(asked).assign(["ann", "bob"])
        assert eps.Preferences(asked, default=0.05).assign(["ann", "bob"]).codes.tolist() == [1, 0]
    with pytest.raises(PreferenceError, match="no preference"):
        eps.Preferences([0.1, math.nan]).assign()
    assert eps.Preferences([0.1, math.nan], default=2).assign().levels.grants == (NANO // 10, 2 * NANO)
    assert eps.Preferences([0.1, None], default=eps.PUBLIC).assign().levels.grants == (NANO // 10, None)
    assert eps.Preferences([math.nan] * 3, default=1).assign().levels == Levels((NANO,), (3,))


@pytest.mark.parametrize("default", ["strict", [0.1], 1j, True])
def test_a_default_is_one_number(default: object) -> None:
    with pytest.raises(PreferenceError):
        eps.Preferences([0.1, None], default=default)  # type: ignore[arg-type]


def test_levels_go_by_name() -> None:
    names = ["open", "strict", "public", "strict", None, math.nan]
    levels = {"strict": 0.05, "standard": 0.2, "open": 1, "public": eps.PUBLIC}
    roster = eps.Preferences.from_levels(names, levels, default="standard").assign()
    assert roster.levels == Levels((50_000_000, 200_000_000, NANO, None), (2, 2, 1, 1))
    assert [roster.levels.name(grant) for grant in roster.levels.grants] == ["strict", "standard", "open", "public"]
    release = eps.count([1] * 6, eps.Preferences.from_levels(names, levels, default="standard"))
    assert release.levels == {0.05: "strict", 0.2: "standard", 1.0: "open", math.inf: "public"}


def test_levels_nobody_chose_are_left_out_and_twins_keep_both_names() -> None:
    roster = eps.Preferences.from_levels(["a", "b"], {"a": 1, "b": 1, "c": 2}).assign()
    assert roster.levels == Levels((NANO,), (2,))
    assert roster.levels.name(NANO) == "a or b"


def test_a_level_without_a_name_is_called_by_its_epsilon() -> None:
    levels = roster_of([0.25, 1.0, eps.PUBLIC]).levels
    assert [levels.name(grant) for grant in levels.grants] == ["0.25", "1", "public"]


@pytest.mark.parametrize(
    ("names", "levels", "default", "text"),
    [
        (
            ["a", "b", "c"],
            {"a": 1},
            None,
            "Unknown privacy levels: b, c. Every level that people chose needs an epsilon.",
        ),
        (["a", None], {"a": 1}, None, "A person has no preference"),
        (["a", None], {"a": 1}, "z", "The default level 'z' is not one of the levels. Levels: a. Try: default='a'"),
        (["a"], {"a": "x"}, None, "Epsilons are not numbers."),
        (["a"], {"a": [1, 2]}, None, "A level has a single epsilon."),
    ],
)
def test_levels_that_do_not_add_up_are_refused(
    names: list[str], levels: dict[str, float], default: str, text: str
) -> None:
    with pytest.raises(PreferenceError) as caught:
        eps.Preferences.from_levels(names, levels, default).assign()
    assert text in str(caught.value)


# More than 256 ------------------------------------------------------------------------------------------------------


def test_the_ladder_is_fixed() -> None:
    assert 200 <= len(LADDER) <= 255
    assert list(LADDER) == sorted(set(LADDER))
    assert LADDER[0] == 1
    # Pinned: a roster of another day must find the same rungs.
    assert (len(LADDER), LADDER[28], LADDER[100], LADDER[-1]) == (254, 10_300_000, 126_000_000, 662_000_000_000_000)
    assert 10_000_000 in LADDER
    assert 10 * NANO in LADDER
    middle = [rung for rung in LADDER if 10_000_000 <= rung <= 10 * NANO]
    assert max(b / a for a, b in pairwise(middle)) < 1.05


def test_256_preferences_are_exact_and_257_go_down_to_the_ladder() -> None:
    epsilons = np.arange(1, MAX_LEVELS + 1) / 100
    exact = roster_of(epsilons).levels
    assert exact.grants == tuple(k * NANO // 100 for k in range(1, 257))
    assert exact.rounding_loss == 0
    rounded = roster_of(np.append(epsilons, 2.57)).levels
    assert set(rounded.grants) <= set(LADDER)
    assert rounded.size == 257
    assert 0 < rounded.rounding_loss < 0.035


def test_a_person_s_rung_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(3)
    mine = np.array([0.0123, 0.5, 7.77, 123.0, 1e-9, 1e6, math.inf])
    crowds = [rng.uniform(0.01, 1, 1000), rng.lognormal(0, 3, 3000).clip(1e-9, 1e6), np.linspace(5, 6, 300)]
    rungs = []
    for crowd in crowds:
        roster = roster_of(np.concatenate([crowd, mine]))
        rungs.append([roster.levels.grants[code] for code in roster.codes[-len(mine) :]])
    assert rungs[0] == rungs[1] == rungs[2]
    assert rungs[0][-1] is None


def test_the_average_loss_is_the_average_loss() -> None:
    rng = np.random.default_rng(4)
    epsilons = np.append(rng.uniform(0.01, 10, 5000), [math.inf] * 100)
    roster = roster_of(epsilons)
    grants = np.array([to_epsilon(g) for g in roster.levels.grants])[roster.codes]
    finite = np.isfinite(epsilons)
    assert roster.levels.rounding_loss == pytest.approx(np.mean(1 - grants[finite] / epsilons[finite]))
    release = eps.count(np.ones(5100), epsilons, mechanism="minimum")
    assert f"by {roster.levels.rounding_loss:.1%} on average" in str(release.guarantee)


# Long rosters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [4096, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 4])
def test_a_level_that_appears_late_is_seen(late: int) -> None:
    epsilons = np.tile([0.2, 1.0, math.inf], CHUNK)[: 2 * CHUNK + 5]
    epsilons[late] = 0.5
    roster = roster_of(epsilons)
    assert roster.levels.grants == (200_000_000, 500_000_000, NANO, None)
    assert roster.levels.sizes == tuple(int((epsilons == e).sum()) for e in (0.2, 0.5, 1.0, math.inf))
    assert np.array_equal(np.array([0.2, 0.5, 1.0, math.inf])[roster.codes], epsilons)


def test_levels_that_keep_appearing_end_on_the_ladder() -> None:
    epsilons = np.full(2 * CHUNK, 0.5)
    epsilons[::2000] = np.arange(1, len(epsilons[::2000]) + 1) / 100
    assert len(np.unique(epsilons)) > MAX_LEVELS
    roster = roster_of(epsilons)
    grants = np.array([to_epsilon(g) for g in roster.levels.grants])
    assert np.all(grants[roster.codes] <= epsilons)
    assert set(roster.levels.grants) <= set(LADDER)


def test_values_whose_hashes_collide_stay_apart() -> None:
    """Only the top 16 bits of bits * multiplier are looked at first; neighbours far below them share all of those."""
    for bits in (0x3FE0000000000000, 0x3FB0000000000000):
        epsilons = np.tile(np.arange(bits, bits + 256 * 2**21, 2**21, dtype=np.uint64).view(np.float64), 20)
        roster = roster_of(epsilons)
        grants = np.array([to_epsilon(g) for g in roster.levels.grants])
        assert np.all(grants[roster.codes] <= epsilons)
        assert np.all(epsilons - grants[roster.codes] < 1.01e-9)


def test_count_codes_counts_over_chunks() -> None:
    codes = np.tile(np.array([0, 2, 2], np.uint8), CHUNK)
    assert count_codes(codes, 4).tolist() == [CHUNK, 0, 2 * CHUNK, 0]


@pytest.mark.parametrize("levels", [1, 3, 12, 13, 100, 256])
def test_some_are_counted_like_all(levels: int) -> None:
    """Level by level, or by one number for the level and whether it counts: as a loop over people does."""
    random = np.random.default_rng(levels)
    codes, which = random.integers(0, levels, 3_000).astype(np.uint8), random.random(3_000) < 0.3
    for these in (which, ~which, np.zeros(3_000, bool), np.ones(3_000, bool)):
        counted = [
            sum(1 for code, here in zip(codes, these, strict=True) if here and code == one) for one in range(levels)
        ]
        assert count_some(codes, levels, these).tolist() == counted
    assert count_some(codes, levels).tolist() == np.bincount(codes, minlength=levels).tolist()


def test_everyone_goes_to_the_last_rung_that_is_not_above_them() -> None:
    """By bits and one comparison; by bisection it is slower. On every rung, beside it, far away, and public."""
    rungs = np.array([rung / NANO for rung in LADDER])
    random = np.random.default_rng(4)
    far = [1e-9, np.nextafter(1e-9, 1), 1e6, np.nextafter(1e6, 0), math.inf]
    beside = [np.nextafter(rungs, np.inf), np.nextafter(rungs[1:], 0), (rungs[1:] + rungs[:-1]) / 2]
    asked = np.concatenate([rungs, *beside, far, np.exp(random.uniform(np.log(1e-9), np.log(1e6), 100_000))])
    for some in (asked, random.permutation(asked), asked[np.isfinite(asked)]):
        made = roster_of(some)
        expected = [math.inf if math.isinf(e) else rungs[rungs <= e][-1] for e in some[:2_000]]
        found = [to_epsilon(made.levels.grants[code]) for code in made.codes[:2_000]]
        assert found == expected
        finite = some[np.isfinite(some)]
        down = rungs[np.searchsorted(rungs, finite, side="right") - 1]
        assert made.levels.rounding_loss == pytest.approx(float(np.mean(1 - down / finite)), rel=1e-12)
        assert sum(made.levels.sizes) == len(some)


@pytest.mark.parametrize("bad", [0.0, -0.0, -1.0, math.nan, 2e6, 1e-10])
@pytest.mark.parametrize("place", [5_000, (1 << 15) + 3, 100_000])
def test_what_nobody_can_grant_is_refused_wherever_it_stands(bad: float, place: int) -> None:
    """A hash of bits has no value of its own for it: not even where the hash is that of nobody's epsilon."""
    for levels in ([0.1], [0.1, 1.0, 2.0], [(1 + k) / 256 for k in range(256)]):
        epsilons = np.resize(np.array(levels), 120_000)
        epsilons[place] = bad
        with pytest.raises(PreferenceError):
            roster_of(epsilons)


def test_a_share_of_every_grant_rounds_down_and_merges() -> None:
    levels = roster_of([0.5, 0.500000001, 1.0, eps.PUBLIC]).levels
    part = levels.take_share(Fraction(1, 10))
    assert part.grants == (50_000_000, 100_000_000, None)
    assert part.sizes == (2, 1, 1)


def test_names_of_levels_that_are_given_for_a_column_of_epsilons_lead_to_the_way_for_names() -> None:
    with pytest.raises(eps.PreferenceError, match=r"is a number.*from_levels"):
        eps.Preferences.from_column("privacy", {"strict": 0.05})  # type: ignore[arg-type]
