"""Sums of products against the slow definition in Python's own integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsilons.summaries import models
from epsilons.summaries.models import AS_STEPS, product_sums
from epsilons.summaries.models import MODEL_STEPS as STEPS

BOUNDS = ((-3.0, 5.0), (0.0, 1.0), (1e6, 1e6 + 1))


def step(value: float, low: float, high: float) -> int | None:
    """The definition: the nearest of 2^17 + 1 grid points, halves up; nobody's for what is not a number."""
    if math.isnan(value):
        return None
    scale = STEPS / (high / 2 - low / 2)
    place = float(value) * scale + (0.5 - (low / 2 + high / 2) * scale)
    return max(-STEPS, min(STEPS, math.floor(place) if math.isfinite(place) else math.copysign(STEPS, place)))


def slow(features: np.ndarray, target: np.ndarray, codes: np.ndarray, levels: int) -> list[list[list[int]]]:
    width = features.shape[1] + 2
    sums = [[[0] * width for _ in range(width)] for _ in range(levels)]
    for row, aim, code in zip(features, target, codes, strict=True):
        placed = [STEPS, *(step(x, *bounds) for x, bounds in zip(row, BOUNDS, strict=True))]
        placed.append(None if math.isnan(aim) else int(aim))
        if None in placed:
            continue
        for j in range(width):
            for k in range(j + 1):
                sums[code][j][k] += int(placed[j]) * int(placed[k])
    return sums


def people(size: int, levels: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    features = np.column_stack([random.uniform(low - 1, high + 1, size) for low, high in BOUNDS])
    target = random.integers(-STEPS, STEPS + 1, size).astype(float)
    for column in range(3):
        features[random.integers(0, size, max(1, size // 20)), column] = random.choice(
            [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324], max(1, size // 20)
        )
    target[:: max(2, size // 7)] = math.nan
    return features, target, random.integers(0, levels, size).astype(np.uint8)


@pytest.mark.parametrize(("size", "levels"), [(1, 1), (2, 2), (300, 3), (300, 256), (5_000, 7)])
def test_sums_of_products_equal_the_definition(size: int, levels: int) -> None:
    features, target, codes = people(size, levels)
    fast = np.tril(product_sums(features, target, BOUNDS, np.asarray, AS_STEPS, codes, levels))
    assert fast.tolist() == slow(features, target, codes, levels)


def test_blocks_slices_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    features, target, codes = people(700, 5)
    whole = product_sums(features, target, BOUNDS, np.asarray, AS_STEPS, codes, 5)
    for block, rows, product, threads in ((512, 256, 8, 1), (1024, 1024, 100, 3), (640, 160, 9, 3), (1, 1, 1, 2)):
        monkeypatch.setattr(models, "_count_processors", lambda threads=threads: threads)
        monkeypatch.setattr(models, "_BLOCK", block)
        monkeypatch.setattr(models, "_SLICE", rows)
        monkeypatch.setattr(models, "_PRODUCT", product * (len(BOUNDS) + 3) ** 2)
        monkeypatch.setattr(models, "_LEAST", 1)
        assert np.array_equal(product_sums(features, target, BOUNDS, np.asarray, AS_STEPS, codes, 5), whole)


def test_the_largest_sums_are_exact() -> None:
    """Everybody at a bound but one, who is a step away: no double may round that away."""
    size = 200_001
    features, target = np.full((size, 1), 5.0), np.full(size, float(STEPS))
    features[0] = 5.0 - 4.0 / STEPS
    sums = product_sums(features, target, BOUNDS[:1], np.asarray, AS_STEPS, np.zeros(size, np.uint8), 1)[0]
    assert sums[1, 1] == (size - 1) * STEPS**2 + (STEPS - 1) ** 2
    assert sums[2, 1] == (size - 1) * STEPS**2 + (STEPS - 1) * STEPS
    assert sums[0, 0] == size * STEPS**2


def test_the_callers_rows_are_left_alone_in_whatever_order_they_lie() -> None:
    features, target, codes = people(100, 2)
    before = features.copy(), target.copy()
    sums = product_sums(features, target, BOUNDS, np.asarray, AS_STEPS, codes, 2)
    assert np.array_equal(features, before[0], equal_nan=True)
    assert np.array_equal(target, before[1], equal_nan=True)
    by_column = np.asfortranarray(features)
    assert np.array_equal(product_sums(by_column, target, BOUNDS, np.asarray, AS_STEPS, codes, 2), sums)


@pytest.mark.parametrize("share", [0.0, 0.6, 0.7, 1.0])
def test_a_level_of_most_people_has_its_own_sums(share: float) -> None:
    """Either side of the share from which on it gets what the others leave of everyone's."""
    features, target, codes = people(900, 4)
    codes[: int(share * 900)] = 2
    fast = np.tril(product_sums(features, target, BOUNDS, np.asarray, AS_STEPS, codes, 4))
    assert fast.tolist() == slow(features, target, codes, 4)
