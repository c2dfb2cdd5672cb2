"""Arithmetic modulo p on arrays, held to Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilons.collection.proof import (
    P,
    ReportShape,
    add,
    dot,
    in_range,
    mul,
    sub,
    subgroup_order,
    to_integers,
    to_words,
    total,
)
from epsilons.testing import seeded

EDGES = [0, 1, 2, P - 1, P - 2, P // 2, P // 2 + 1, 2**32, 2**32 - 1, 2**32 + 1, 2**63, P - 2**32, P - 2**32 + 1]
PAIRS = [(a, b) for a in EDGES for b in EDGES]


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return to_words(a for a, _ in pairs), to_words(b for _, b in pairs)


def check(pairs: list[tuple[int, int]]) -> None:
    a, b = columns(pairs)
    assert add(a, b).tolist() == [(x + y) % P for x, y in pairs]
    assert sub(a, b).tolist() == [(x - y) % P for x, y in pairs]
    assert mul(a, b).tolist() == [x * y % P for x, y in pairs]


def test_at_the_edges() -> None:
    check(PAIRS)


word = st.integers(0, P - 1)


@given(st.lists(st.tuples(word, word), min_size=1))
def test_of_any_words(pairs: list[tuple[int, int]]) -> None:
    check(pairs)


def test_sums_and_inner_products() -> None:
    words = seeded(1).words(6_000) % np.uint64(P)
    rows, weights = words.reshape(300, 20), words[:20]
    assert int(total(words)) == sum(words.tolist()) % P
    assert total(rows, axis=1).tolist() == [sum(row) % P for row in rows.tolist()]
    wanted = [sum(x * y for x, y in zip(row, weights.tolist(), strict=True)) % P for row in rows.tolist()]
    assert dot(rows, weights).tolist() == wanted
    full = np.full(5_000, P - 1, np.uint64)
    assert int(total(full)) == (P - 1) * 5_000 % P
    assert dot(rows[:0], weights).tolist() == []


def test_negative_numbers_come_back() -> None:
    numbers = [0, 1, -1, 5, -5, P // 2, -(P // 2)]
    assert to_integers(to_words(numbers)) == numbers
    assert in_range(to_words(numbers))
    assert not in_range(np.array([P], np.uint64))


@pytest.mark.parametrize("least", [1, 2, 3, 4, 7, 12, 65, 102, 1_000, 10_002, 100_002])
def test_the_subgroup_is_the_smallest_large_enough(least: int) -> None:
    order = subgroup_order(least)
    assert (P - 1) % order == 0
    assert not any((P - 1) % smaller == 0 for smaller in range(least, order))
    root = ReportShape(least - 1)._root
    assert pow(root, order, P) == 1
    primes = [q for q in (2, 3, 5, 17, 257, 65537) if order % q == 0]
    assert all(pow(root, order // q, P) != 1 for q in primes)


def test_the_prime_and_its_generator() -> None:
    assert P - 1 == 2**32 * 3 * 5 * 17 * 257 * 65537
    assert all(pow(7, (P - 1) // q, P) != 1 for q in (2, 3, 5, 17, 257, 65537))
