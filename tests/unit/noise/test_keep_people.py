"""One coin per person: a word of the stream, or a function of the key and the person and of nothing else."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from epsilons.noise.coins import keep_digests, keep_people
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.testing import seeded


def digests(count: int, seed: int = 1) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, 16), dtype=np.uint8)


def slow(key: bytes, people: NDArray[np.uint8], codes: NDArray[np.int64], chances: list[int]) -> list[bool]:
    """The definition, person by person: the first eight bytes of AES(key, digest), as a number, below the chance."""
    kept = []
    for digest, code in zip(people, codes, strict=True):
        cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        coin = int.from_bytes(cipher.update(digest.tobytes())[:8], "little")
        kept.append(bool(code >= 0) and coin < chances[code])
    return kept


def test_a_coin_is_what_it_says() -> None:
    people, codes = digests(300), np.random.default_rng(2).integers(-1, 4, 300)
    chances = [0, 2**62, 2**64 - 1, ALWAYS]
    key = seeded(3).bytes(32)
    assert keep_digests(seeded(3), people, codes, chances).tolist() == slow(key, people, codes, chances)


def test_people_without_digests_take_the_words_of_the_stream_in_turn() -> None:
    codes, chances = np.random.default_rng(2).integers(0, 4, 300_000), [0, 2**62, 2**64 - 1, ALWAYS]
    limits = np.array([min(chance, 2**64 - 1) for chance in chances], np.uint64)[codes]
    expected = (seeded(3).words(300_000) < limits) | (codes == 3)
    np.testing.assert_array_equal(keep_people(seeded(3), codes, chances), expected)


def test_a_chance_of_one_keeps_everybody_and_none_nobody() -> None:
    """2^64 as a limit of 64 bits would be 0."""
    people = digests(1000)
    assert keep_digests(seeded(1), people, np.zeros(1000, int), [ALWAYS]).all()
    assert not keep_digests(seeded(1), people, np.zeros(1000, int), [0]).any()
    assert not keep_digests(seeded(1), people, np.full(1000, -1), [ALWAYS]).any()
    assert keep_digests(seeded(1), people[:0], np.zeros(0, int), [ALWAYS]).tolist() == []


def test_nobody_elses_coin_moves_when_somebody_leaves_or_the_order_changes() -> None:
    people, codes = digests(500), np.random.default_rng(2).integers(0, 2, 500)
    chances = [2**62, 2**63]
    before = keep_digests(seeded(5), people, codes, chances)
    for gone in (0, 250, 499):
        after = keep_digests(seeded(5), np.delete(people, gone, 0), np.delete(codes, gone), chances)
        np.testing.assert_array_equal(np.delete(before, gone), after)
    order = np.random.default_rng(3).permutation(500)
    np.testing.assert_array_equal(keep_digests(seeded(5), people[order], codes[order], chances), before[order])


def test_a_coin_does_not_depend_on_where_a_chunk_ends() -> None:
    count = (1 << 18) + 3
    people, codes = digests(count), np.zeros(count, np.int32)
    whole = keep_digests(seeded(7), people, codes, [2**63])
    tail = keep_digests(seeded(7), people[-10:], codes[-10:], [2**63])
    np.testing.assert_array_equal(whole[-10:], tail)


def test_digests_may_lie_anywhere_in_memory() -> None:
    wide = np.zeros((50, 32), np.uint8)
    wide[:, :16] = digests(50)
    codes = np.zeros(50, int)
    ours = keep_digests(seeded(9), wide[:, :16], codes, [2**63])
    np.testing.assert_array_equal(ours, keep_digests(seeded(9), digests(50), codes, [2**63]))


@pytest.mark.statistical
@pytest.mark.parametrize("chance", [2**60, 2**63, 13 * 2**60])
def test_the_share_that_is_kept(chance: int) -> None:
    """Within five standard deviations (a false alarm in two million); a chance 10% off is not."""
    count = 200_000
    kept = int(keep_digests(seeded(11), digests(count), np.zeros(count, int), [chance]).sum())
    expected, deviation = count * chance / 2**64, (count * chance / 2**64 * (1 - chance / 2**64)) ** 0.5
    assert abs(kept - expected) < 5 * deviation
    assert abs(kept - 1.1 * expected) > 5 * deviation


class StuckKey(Entropy):
    """The planted bug: every release has the same key."""

    def bytes(self, n: int) -> bytes:
        return bytes(n)


@pytest.mark.statistical
def test_two_samples_are_independent_and_a_reused_key_is_caught() -> None:
    """Kept twice: a quarter of the people with fresh keys, half of them with one key for both."""
    count, codes = 100_000, np.zeros(100_000, int)
    for entropy, honest in ((seeded(13), True), (StuckKey(bytes(32)), False)):
        first, second = (keep_digests(entropy, digests(count), codes, [2**63]) for _ in range(2))
        both = int((first & second).sum())
        assert (abs(both - count / 4) < 5 * (count * 3 / 16) ** 0.5) is honest
