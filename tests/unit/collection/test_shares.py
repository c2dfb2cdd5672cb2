"""Shares: all of them are the vector, fewer are noise, and each serves one purpose only."""

import hashlib
import struct
from collections.abc import Callable
from functools import cache, partial
from itertools import combinations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import chi2_contingency

from epsilons.collection import reports
from epsilons.collection.proof import P, ReportShape, Words, add, to_words
from epsilons.collection.reports import expand, explicit_place, read_share, split_vector, uniform_words
from epsilons.collection.sealing import OpeningKey, SealingKey, fingerprint, keep_secret, purpose, read_secret
from epsilons.noise import Entropy, system
from epsilons.testing import seeded
from support.collections_world import histogram_p_value

COLLECTION = bytes(range(32))


def purposes(report: bytes, aggregators: int = 3) -> list[bytes]:
    return [purpose(COLLECTION, place, 1, 0, report) for place in range(aggregators)]


def parts(vector: Words, report: bytes, entropy: Entropy, aggregators: int = 3) -> list[Words]:
    """Every aggregator's share, as words."""
    wanted = purposes(report, aggregators)
    seeds = [entropy.bytes(32) for _ in wanted[1:]]
    pieces = split_vector(vector, wanted, explicit_place(report, aggregators), seeds)
    found = [read_share(piece, what_for, len(vector)) for piece, what_for in zip(pieces, wanted, strict=True)]
    assert all(share is not None for share in found)
    return [share for share in found if share is not None]


@pytest.mark.parametrize("aggregators", [2, 3, 5])
def test_all_shares_together_are_the_vector(aggregators: int) -> None:
    entropy = seeded(1)
    for _ in range(20):
        vector, report = uniform_words(entropy, 9), entropy.bytes(16)
        whole = np.zeros(9, np.uint64)
        for share in parts(vector, report, entropy, aggregators):
            whole = add(whole, share)
        assert whole.tolist() == vector.tolist()


def test_the_load_is_spread_over_the_aggregators() -> None:
    entropy = seeded(2)
    places = np.bincount([explicit_place(entropy.bytes(16), 3) for _ in range(3_000)])
    assert places.min() > 900


def test_a_seed_means_other_words_for_every_other_purpose() -> None:
    seed, report = bytes(32), bytes(16)
    first = purpose(COLLECTION, 0, 1, 0, report)
    others = [
        purpose(COLLECTION, 1, 1, 0, report),
        purpose(COLLECTION, 0, 2, 0, report),
        purpose(COLLECTION, 0, 1, 1, report),
        purpose(COLLECTION, 0, 1, 0, bytes(15) + b"x"),
        purpose(bytes(32), 0, 1, 0, report),
    ]
    words = expand(seed, first, 8)
    assert all(not np.isin(expand(seed, other, 8), words).any() for other in others)
    assert (expand(seed, first, 3) == words[:3]).all()


def test_the_words_of_a_seed_are_the_key_stream_of_its_hash() -> None:
    """A stored share outlives a release, so the form is fixed: AES-256-CTR from zero under SHA-256 of everything."""
    seed, what_for = bytes(range(32)), purpose(COLLECTION, 2, 1, 3, bytes(16))
    assert what_for == b"epsilons report 1" + COLLECTION + bytes([2, 1, 3]) + bytes(16)
    key = hashlib.sha256(b"epsilons share 1" + what_for + seed).digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(800))
    assert expand(seed, what_for, 100).tolist() == list(struct.unpack("<100Q", stream))


class Scripted:
    """Entropy that says what it is told."""

    def __init__(self, words: list[int]) -> None:
        self._words = list(words)

    def words(self, count: int) -> Words:
        said, self._words = self._words[:count], self._words[count:]
        return np.array(said, dtype=np.uint64)


def test_words_from_p_on_are_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [P, 5, 2**64 - 1, P - 1, P + 1, 7, 0, 9]
    assert uniform_words(Scripted(said), 3).tolist() == [P - 1, 5, 7]  # type: ignore[arg-type]
    monkeypatch.setattr(reports, "Entropy", lambda key: Scripted(said))
    assert expand(bytes(32), b"", 4).tolist() == [5, P - 1, 7, 0]


def test_what_is_no_share_is_refused() -> None:
    assert read_share(bytes(31), b"", 6) is None
    assert read_share(bytes(47), b"", 6) is None
    assert read_share(to_words(range(6)).tobytes(), b"", 6) is not None
    assert read_share(np.full(6, P, "<u8").tobytes(), b"", 6) is None


# What fewer than all see ----------------------------------------------------------------------------------------------

MANY = 3_000


@cache
def held_by_each(answer: int, seed: int, split_it=parts) -> list[tuple[Words, ...]]:  # type: ignore[no-untyped-def]
    return split_many(answer, seeded(seed), MANY, split_it)


def split_many(answer: int, entropy: Entropy, owners: int, split_it=parts) -> list[tuple[Words, ...]]:  # type: ignore[no-untyped-def]
    """What every aggregator holds of many owners with the same answer."""
    rows = ReportShape(3).prove(np.full(owners, answer), uniform_words(entropy, owners))
    return list(zip(*(split_it(row, entropy.bytes(16), entropy) for row in rows), strict=True))


def views(answer: int, missing: int, seed: int, split_it=parts) -> Words:  # type: ignore[no-untyped-def]
    """All words that the aggregators but one hold."""
    held = held_by_each(answer, seed, split_it)
    return np.concatenate([share for place, shares in enumerate(held) if place != missing for share in shares])


@pytest.mark.statistical
@pytest.mark.parametrize("missing", range(3))
def test_all_but_one_see_uniform_words_whatever_the_answer(missing: int) -> None:
    tables = []
    for answer in range(3):
        words = views(answer, missing, 100 + answer)
        assert histogram_p_value(words) > 1e-4
        tables.append(np.bincount((words >> np.uint64(60)).astype(np.int64), minlength=16))
    # And the answers cannot be told apart.
    assert chi2_contingency(np.array(tables)).pvalue > 1e-4


@pytest.mark.soak
@pytest.mark.figure("figure_11_views")
@pytest.mark.parametrize("aggregators", [2, 3, 4, 5])
def test_any_all_but_one_see_uniform_words(aggregators: int, record_property: Callable[[str, int], None]) -> None:
    """Not seeded; 98 tests of all together, each of which fails by chance once in a hundred million times."""
    held = [split_many(answer, system(), 20_000, partial(parts, aggregators=aggregators)) for answer in range(3)]
    for missing in range(aggregators):
        tables = []
        for shares in held:
            words = np.concatenate([share for place, of in enumerate(shares) if place != missing for share in of])
            assert histogram_p_value(words) > 1e-8
            tables.append(np.bincount((words >> np.uint64(60)).astype(np.int64), minlength=16))
        assert chi2_contingency(np.array(tables)).pvalue > 1e-8
    record_property("size", aggregators)


@pytest.mark.statistical
def test_planted_leaks_are_seen() -> None:
    def forgets_to_subtract(row: Words, report: bytes, entropy: Entropy) -> list[Words]:
        held = parts(row, report, entropy)
        held[explicit_place(report, 3)] = row
        return held

    def one_seed_for_two(row: Words, report: bytes, entropy: Entropy) -> list[Words]:
        wanted = purposes(report)
        seed = entropy.bytes(32)
        pieces = split_vector(row, [wanted[0]] * 3, explicit_place(report, 3), [seed, seed])
        found = [read_share(piece, wanted[0], len(row)) for piece in pieces]
        return [share for share in found if share is not None]

    assert histogram_p_value(views(1, 0, 7, forgets_to_subtract)) < 1e-9
    # Words that come in equal pairs are not independent: a chi-square of so many words is twice what it should be.
    words = views(1, 0, 8, one_seed_for_two)
    assert len(np.unique(words)) < 0.9 * len(words)
    assert len(np.unique(views(1, 0, 8))) == len(views(1, 0, 8))


def test_the_view_of_all_but_the_explicit_one_is_made_without_the_answer() -> None:
    """They hold seeds alone: the same bytes for every answer."""
    report, shape = bytes(16), ReportShape(3)
    rows = shape.prove(np.arange(3), uniform_words(seeded(5), 3))
    seen = []
    for row in rows:
        held = parts(row, report, seeded(6))
        seen.append([share.tolist() for place, share in enumerate(held) if place != explicit_place(report, 3)])
    assert seen[0] == seen[1] == seen[2]


def test_for_every_view_every_answer_is_equally_possible() -> None:
    """Whatever all but one hold, exactly one share of the missing one makes it any given answer."""
    shape, report = ReportShape(3), bytes(16)
    rows = shape.prove(np.arange(3), uniform_words(seeded(9), 3))
    held = parts(rows[0], report, seeded(11))
    for few in combinations(range(3), 2):
        known = add(held[few[0]], held[few[1]])
        missing = [[(int(w) - int(k)) % P for w, k in zip(row, known.tolist(), strict=True)] for row in rows]
        assert all(0 <= word < P for share in missing for word in share)
        assert add(known, to_words(missing[2])).tolist() == rows[2].tolist()


# Sealing --------------------------------------------------------------------------------------------------------------


def test_only_the_right_key_opens_and_only_for_the_right_purpose() -> None:
    key, other = OpeningKey.fresh(), OpeningKey.fresh()
    sealed = key.public.seal(b"a share", b"for this")
    assert key.open(sealed, b"for this") == b"a share"
    assert key.open(sealed, b"for that") is None
    assert other.open(sealed, b"for this") is None
    for place in range(len(sealed)):
        assert key.open(sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :], b"for this") is None
    for length in (0, 1, 31, 32, 47, len(sealed) - 1):
        assert key.open(sealed[:length], b"for this") is None
    assert SealingKey.from_text(str(key.public)).seal(b"a share", b"for this") != sealed


def test_secrets_are_kept_where_only_their_owner_reads(tmp_path) -> None:  # type: ignore[no-untyped-def]
    first = keep_secret(tmp_path / "a.key")
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    assert keep_secret(tmp_path / "a.key") == read_secret(tmp_path / "a.key") == first
    assert len(first) == 32
    assert len(fingerprint(first.hex()).split()) == 4
