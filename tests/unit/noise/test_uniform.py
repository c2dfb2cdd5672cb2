from collections.abc import Callable

import numpy as np
import pytest

from epsilons.noise import Entropy
from epsilons.noise.entropy import low_masks, uniform, uniform_many
from epsilons.testing import seeded

TapeMaker = Callable[..., Entropy]


@pytest.mark.parametrize("bound", [1, 2, 3, 4, 5, 255, 256, 257, 2**63 - 1, 10**30])
def test_masks_and_widths_reach_the_bound_and_no_further(bound: int) -> None:
    assert all(0 <= uniform(seeded(seed), bound) < bound for seed in range(30))
    if bound < 2**63:
        mask = int(low_masks(np.array([bound]))[0])
        assert mask == (1 << (bound - 1).bit_length()) - 1


def test_every_accepted_string_is_equally_likely(bit_tape: Callable[[int], Entropy]) -> None:
    """Bound 5 reads three bits: the strings 0..4 are accepted as they are, 5..7 read again."""
    assert [uniform(bit_tape(string), 5) for string in range(5)] == [0, 1, 2, 3, 4]
    assert [uniform(bit_tape(string | 2 << 3), 5) for string in (5, 6, 7)] == [2, 2, 2]


def test_rejected_words_are_drawn_again(tape: TapeMaker) -> None:
    """The first of two draws meets 7 and 6 before 3; the second takes its 4 at once."""
    assert uniform_many(tape(7, 4, 6, 3), np.array([5, 5])).tolist() == [3, 4]


def test_bounds_of_one_read_nothing(tape: TapeMaker) -> None:
    entropy = tape()
    assert uniform_many(entropy, np.ones(10, dtype=np.int64)).tolist() == [0] * 10
    assert uniform(entropy, 1) == 0
    assert vars(entropy)["taken"] == 0


def test_large_bounds() -> None:
    bounds = np.full(2000, 2**62 + 1)
    drawn = uniform_many(seeded(1), bounds)
    assert ((drawn >= 0) & (drawn < bounds)).all()
    assert drawn.max() > 2**61
