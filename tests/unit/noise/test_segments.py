"""Runs of outcomes: probabilities against a naive sum, decisions proved string by string, and laziness."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import exp

import numpy as np
import pytest

from epsilons.noise import Block, Entropy, SegmentSampler, segments
from epsilons.testing import seeded

TapeMaker = Callable[..., Entropy]
HALF_NANO = Fraction(1, 2 * 10**9)
WORD = 2**64


def naive(costs: dict[int, int], unit: Fraction) -> dict[int, float]:
    weights = {outcome: exp(-cost * unit) for outcome, cost in costs.items()}
    total = sum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}


def listed(sampler: SegmentSampler) -> dict[int, float]:
    outcomes, probabilities = sampler.probabilities()
    assert outcomes.dtype == np.int64
    assert probabilities.dtype == np.float64
    return dict(zip(outcomes.tolist(), probabilities.tolist(), strict=True))


def close(actual: dict[int, float], expected: dict[int, float]) -> bool:
    return actual == pytest.approx(expected, rel=1e-13, abs=1e-300)


def small() -> Block:
    """Outcomes -4..9: a flat run, a rising run outwards on each side, a single outcome."""
    return Block(
        first=np.array([0, 3, -1, 9]),
        direction=np.array([1, 1, -1, 1]),
        count=np.array([3, 6, 4, 1]),
        cost=np.array([0, 1, 2, 9]),
        slope=np.array([0, 1, 3, 5]),
        left_over=0,
        floor=0,
    )


SMALL_COSTS = {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 3, 6: 4, 7: 5, 8: 6, -1: 2, -2: 5, -3: 8, -4: 11, 9: 9}


@pytest.mark.parametrize("unit", [Fraction(1, 2), Fraction(1, 1000), Fraction(7)])
def test_probabilities_are_normalised_exponentials(unit: Fraction) -> None:
    assert close(listed(SegmentSampler([small()], unit)), naive(SMALL_COSTS, unit))


def test_outcomes_come_in_ascending_order() -> None:
    outcomes, _ = SegmentSampler([small()], Fraction(1)).probabilities()
    assert outcomes.tolist() == list(range(-4, 10))


def test_the_papers_median() -> None:
    """Jorgensen et al. 2015, D = <3,5,6,9,11>: scores -1.5 at 3 and 4, -.5 at 5, 0 at 6, -.6 at 11."""
    costs = {3: 1_500, 4: 1_500, 5: 500, 6: 0, 11: 600}
    block = Block([6, 5, 11, 3], 1, [1, 1, 1, 2], [0, 500, 600, 1_500], 0, 0, 0)
    unit = Fraction(1, 2000)
    assert close(listed(SegmentSampler([block], unit)), naive(costs, unit))


def test_costs_larger_than_int64_and_a_large_common_part() -> None:
    shift = 10**40
    block = Block([0, 1], 1, 1, [shift, shift + 10**9], 0, 0, 0)
    assert close(listed(SegmentSampler([block], HALF_NANO)), naive({0: 0, 1: 10**9}, HALF_NANO))
    assert {SegmentSampler([block], HALF_NANO).draw(seeded(seed)) for seed in range(30)} == {0, 1}


def test_object_arrays_of_python_integers() -> None:
    costs = np.array([10**30, 10**30 + 1], dtype=np.object_)
    sampler = SegmentSampler([Block([0, 1], 1, 1, costs, 0, 0, 0)], Fraction(1))
    assert close(listed(sampler), naive({0: 0, 1: 1}, Fraction(1)))


def exact_edges(costs: list[list[int]], unit: Fraction) -> list[Fraction]:
    """C_j / T for each run, from weights good to 60 digits."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        rate = Decimal(unit.numerator) / Decimal(unit.denominator)
        masses = [Fraction(sum((-cost * rate).exp() for cost in run)) for run in costs]
    total = sum(masses)
    return [sum(masses[: j + 1], Fraction(0)) / total for j in range(len(masses))]


@pytest.mark.parametrize("bits", [4, 7, 12])
@pytest.mark.parametrize("unit", [Fraction(1, 2), Fraction(1, 100)])
@pytest.mark.parametrize("spare", [32, 0, -5])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
def test_every_decision_is_proved_by_the_true_edges(
    monkeypatch: pytest.MonkeyPatch, bits: int, unit: Fraction, spare: int, order: list[int]
) -> None:
    """For every p-bit string the run found holds all of [R, R+1)/2^p; few strings stay undecided.

    With fewer spare bits the masses are coarse: more strings stay undecided, none is decided wrongly. Whether
    the rounded runs come before the exact one (cost 0) or after it decides which of the bounds must give way.
    """
    monkeypatch.setattr(segments, "_SPARE_BITS", spare)
    costs = [[0, 0, 0], [1, 2, 3, 4, 5, 6], [2, 5, 8, 11], [9]]
    block = small()
    columns = [np.asarray(column)[order] for column in (block.first, block.direction, block.count, block.cost)]
    shuffled = Block(*columns, np.asarray(block.slope)[order], left_over=0, floor=0)
    table = SegmentSampler([shuffled], unit)._table(bits)
    edges = [Fraction(0), *exact_edges([costs[run] for run in order], unit)]
    undecided = 0
    for known in range(1 << bits):
        run = table.find(known)
        if run is None:
            undecided += 1
            continue
        assert edges[run] <= Fraction(known, 1 << bits)
        assert Fraction(known + 1, 1 << bits) <= edges[run + 1] + Fraction(1, 10**50)
    assert spare < 32 or undecided <= 3 * len(order)


@pytest.mark.parametrize("bits", range(3, 11))
@pytest.mark.parametrize("count", [12, 40])
def test_every_decision_is_proved_when_outcomes_are_unlisted(
    monkeypatch: pytest.MonkeyPatch, bits: int, count: int
) -> None:
    """The same with blocks left: T has mass that was never listed, and the edges still hold the strings."""
    monkeypatch.setattr(segments, "_WORD", bits)
    for unit in (Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(3, 2)):
        pulled: list[int] = []
        table = SegmentSampler(steps(count, 1, pulled), unit)._table(bits)
        edges = [Fraction(0), *exact_edges([[i] for i in range(count)], unit)]
        for known in range(1 << bits):
            run = table.find(known)
            if run is not None:
                assert edges[run] <= Fraction(known, 1 << bits)
                assert Fraction(known + 1, 1 << bits) <= edges[run + 1] + Fraction(1, 10**50)


def test_a_complete_list_decides_the_last_string() -> None:
    sampler = SegmentSampler([small()], Fraction(1, 100))
    assert [sampler._table(bits).find((1 << bits) - 1) for bits in (8, 64, 128)] == [3, 3, 3]


NEARLY_ALL = Block([0], 1, 1, 0, 0, left_over=1, floor=1000)
ALMOST_NOTHING = Block([0, 1], 1, 1, [0, 1000], 0, 0, 0)


@pytest.mark.parametrize("block", [small(), NEARLY_ALL, ALMOST_NOTHING])
def test_many_and_one_find_the_same_runs(block: Block) -> None:
    table = SegmentSampler([block], Fraction(1, 3))._table(64)
    edges = [edge + near for edge in table._before for near in range(-2, 4) if 0 <= edge + near < WORD]
    words = np.concatenate([seeded(1).words(2000), np.array([0, WORD - 1, *edges], dtype=np.uint64)])
    runs, undecided = table.find_many(words)
    found = [table.find(int(word)) for word in words]
    assert [index for index, run in enumerate(found) if run is None] == undecided.tolist()
    assert [run for run in found if run is not None] == np.delete(runs, undecided).tolist()


def steps(count: int, cost: int, pulled: list[int]) -> Iterator[Block]:
    """Blocks of one outcome each; outcome i costs i * cost."""
    for i in range(count):
        pulled.append(i)
        yield Block([i], 1, 1, [i * cost], 0, left_over=count - 1 - i, floor=(i + 1) * cost)


def test_blocks_that_cannot_matter_are_not_asked_for() -> None:
    pulled: list[int] = []
    sampler = SegmentSampler(steps(10_000, 1, pulled), Fraction(1))
    # 10,000 exp(-k) < 2^-64 at k = 54
    assert len(pulled) == pytest.approx(54, abs=1)
    sampler.draw_many(seeded(1), 10_000)
    for seed in range(100):
        sampler.draw(seeded(seed))
    assert len(pulled) == pytest.approx(54, abs=1)


def test_an_undecided_draw_asks_for_more_blocks_and_bits(tape: TapeMaker) -> None:
    """All ones lies beyond everything listed at 64 bits: outcomes near 64 log 2 = 44.4, then twice that."""
    pulled: list[int] = []
    sampler = SegmentSampler(steps(10_000, 1, pulled), Fraction(1))
    before = len(pulled)
    assert sampler.draw(tape(WORD - 1, 0)) == pytest.approx(44, abs=1)
    assert len(pulled) == pytest.approx(98, abs=2)
    assert len(pulled) > before
    assert sampler.draw(tape(WORD - 1, WORD - 1, WORD // 2, WORD // 2)) == pytest.approx(88, abs=2)
    many = sampler.draw_many(tape(WORD - 1, 0, 0), 2)
    assert many.tolist() == [sampler.draw(tape(WORD - 1, 0)), 0]


def test_a_boundary_word_is_decided_by_later_bits(tape: TapeMaker) -> None:
    """Two outcomes of equal weight: the words around 1/2 are undecided, the next bits decide."""
    sampler = SegmentSampler([Block([0, 1], 1, 1, 5, 0, 0, 0)], Fraction(1))
    table = sampler._table(64)
    assert table.find(WORD // 2) is None
    assert table.find(WORD // 2 - 1) is None
    assert sampler.draw(tape(WORD // 2, WORD // 2)) == 1
    assert sampler.draw(tape(WORD // 2 - 1, WORD // 2)) == 0
    assert sampler.draw_many(tape(WORD // 2, WORD // 2 - 1, WORD // 2, WORD // 2), 2).tolist() == [1, 0]


def test_the_last_word_belongs_to_the_last_run(tape: TapeMaker) -> None:
    sampler = SegmentSampler([small()], Fraction(1, 100))
    assert sampler.draw(tape(WORD - 1)) == 9
    assert sampler.draw_many(tape(WORD - 1), 1).tolist() == [9]
    assert sampler.draw_many(tape(0, 3), 1)[0] in {0, 1, 2}


def test_one_run_and_one_outcome() -> None:
    only = SegmentSampler([Block([42], 1, 1, 7, 0, 0, 0)], Fraction(1))
    assert only.draw(seeded(1)) == 42
    assert only.draw_many(seeded(1), 100).tolist() == [42] * 100
    assert only.draw_many(seeded(1), 0).tolist() == []
    assert listed(only) == {42: 1.0}


def test_a_run_of_2_to_the_62_outcomes() -> None:
    sampler = SegmentSampler([Block([-(2**61)], 1, 2**62, 0, 0, 0, 0)], Fraction(1))
    drawn = sampler.draw_many(seeded(1), 1000)
    assert drawn.min() < -(2**60)
    assert drawn.max() > 2**60
    assert -(2**61) <= sampler.draw(seeded(1)) < 2**61


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": [3, 6, 4, 0]}, "count >= 1"),
        ({"slope": [0, 1, -1, 0]}, "slope >= 0"),
        ({"direction": [1, 1, 2, 1]}, "direction"),
        ({"left_over": -1}, "left_over"),
        ({"count": [1, 2]}, "one entry per run"),
        ({"left_over": 3}, "left over"),
        ({"first": []}, "one entry per run"),
    ],
)
def test_malformed_blocks_are_refused(change: dict[str, object], message: str) -> None:
    block = Block(**{**vars(small()), **change})
    with pytest.raises(ValueError, match=message):
        SegmentSampler([block], Fraction(1))


def test_floats_are_refused() -> None:
    with pytest.raises(TypeError):
        SegmentSampler([Block([0], 1, 1, np.array([0.5]), 0, 0, 0)], Fraction(1))


def test_broken_promises_are_refused() -> None:
    first = Block([0], 1, 1, 0, 0, left_over=1, floor=5)
    cheaper = Block([1], 1, 1, 4, 0, left_over=0, floor=0)
    more = Block([1, 2], 1, 1, 5, 0, left_over=0, floor=0)
    for second in (cheaper, more):
        with pytest.raises(ValueError, match="block before"):
            SegmentSampler([first, second], Fraction(1))


def test_no_blocks_and_no_unit() -> None:
    with pytest.raises(ValueError, match="ended"):
        SegmentSampler([], Fraction(1))
    with pytest.raises(ValueError, match="unit"):
        SegmentSampler([small()], Fraction(0))


def test_listing_all_probabilities_does_not_disturb_draws() -> None:
    pulled: list[int] = []
    sampler = SegmentSampler(steps(200, 1, pulled), Fraction(1, 2))
    before = sampler.draw_many(seeded(1), 100).tolist()
    outcomes, probabilities = sampler.probabilities()
    assert len(outcomes) == 200
    assert probabilities.sum() == pytest.approx(1, abs=1e-14)
    assert sampler.draw_many(seeded(1), 100).tolist() == before
