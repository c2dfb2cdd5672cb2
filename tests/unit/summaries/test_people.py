"""Samples of people: whoever is certain stays, whoever has no chance goes, and the rest in their share."""

import numpy as np
import pytest

from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.count import Count
from epsilons.statistics.counting import thin_counts
from epsilons.statistics.total import Sum
from epsilons.summaries.arrays import CHUNK, ArrayPeople
from epsilons.testing import seeded


class Largest(Entropy):
    """All bits are one: the largest words there are."""

    def bytes(self, n: int) -> bytes:
        return b"\xff" * n


def people(n: int) -> ArrayPeople:
    return ArrayPeople.of(np.ones(n), roster_of(np.resize([0.1, 0.5, 1.0], n)))


def test_certain_people_stay_and_impossible_people_go() -> None:
    everyone = people(CHUNK + 5)
    sizes = list(everyone.levels.sizes)
    for entropy in (seeded(1), Largest()):
        chances = [ALWAYS, 0, ALWAYS]
        kept = [sizes[0], 0, sizes[2]]
        assert everyone.sampled_tally(Count(), chances, entropy)[0][:, 0].tolist() == kept
        assert Count().sampled_tally(everyone, chances, entropy)[0][:, 0].tolist() == kept
        assert everyone.sampled_cells(order.median((0, 2)), chances, entropy)[0].totals.tolist() == kept
        assert (everyone.sampled_tally(Sum((-1, 1)), chances, entropy)[0][:, 0] > 0).tolist() == [True, False, True]


@pytest.mark.parametrize("statistic", [Count(), Sum((-1, 1))])
def test_the_rest_stay_in_their_share(statistic: Count | Sum) -> None:
    everyone = people(30_000)
    unit = 1 if isinstance(statistic, Count) else 1 << 30
    chances = [ALWAYS // 10, ALWAYS // 2, ALWAYS // 10 * 9]
    coins = everyone.sampled_tally(statistic, chances, seeded(2))
    drawn = statistic.sampled_tally(everyone, chances, seeded(2))
    for sums in (coins, drawn):
        kept = sums[0][:, 0] / unit
        # Seven standard deviations of 10,000 coins.
        assert np.all(np.abs(kept - [1000, 5000, 9000]) < 7 * np.sqrt([900, 2500, 900]))
    assert np.array_equal(coins[0], drawn[0]) is isinstance(statistic, Sum), "a count is thinned, not tossed for"


def test_thinning_looks_at_every_cell_on_its_own() -> None:
    counts = np.array([[4, 0, 7], [3, 2, 1]])
    assert thin_counts(counts, [ALWAYS, ALWAYS], seeded(3)).tolist() == counts.tolist()
    assert thin_counts(counts, [0, 0], seeded(3)).tolist() == [[0, 0, 0], [0, 0, 0]]
    some = thin_counts(counts, [ALWAYS // 2, ALWAYS // 2], seeded(3))
    assert np.all((some >= 0) & (some <= counts))
