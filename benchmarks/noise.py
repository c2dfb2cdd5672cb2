"""Random bits, noise and coins in bulk, beside numpy's generator, which is neither unpredictable nor exact."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np
from timing import Group, Row, Size, again, time_by_turns

from epsilons.noise.coins import bernoulli, binomial
from epsilons.noise.entropy import system
from epsilons.noise.laplace import discrete_laplace_many
from epsilons.noise.weighing import keep_chance

#: Sample's coin for somebody who granted .2 at a threshold of 1.
_CHANCE = keep_chance(200_000_000, 1_000_000_000)
_FLOAT_CHANCE = _CHANCE / 2**64


def _measure(size: Size) -> Iterator[Row]:
    entropy, random = system(), np.random.Generator(np.random.PCG64(5))
    repetitions = size.repetitions(9)
    amount = 2_000 if size.quick else 1 << 26
    yield time_by_turns(
        "random bytes (AES-256 in counter mode)",
        again(partial(entropy.bytes, amount)),
        partial(random.bytes, amount),
        against="numpy's PCG64, bytes",
        repetitions=repetitions,
        amount=amount,
        things="B",
    )
    draws = size.people(1_000_000)
    for scale in (1, 100, 1_000_000):
        yield time_by_turns(
            f"discrete Laplace, scale {scale:,}",
            again(partial(discrete_laplace_many, entropy, Fraction(1, scale), draws)),
            lambda scale=scale: np.rint(random.laplace(0, scale, draws)),  # type: ignore[misc]
            against="numpy's Laplace, rounded",
            repetitions=repetitions,
            amount=draws,
            things="draws",
        )
    people = size.people(10_000_000)
    yield time_by_turns(
        "a coin for each person",
        again(partial(bernoulli, entropy, _CHANCE, people)),
        lambda: random.random(people) < _FLOAT_CHANCE,
        against="numpy's uniform, compared",
        repetitions=repetitions,
        amount=people,
        things="people",
    )
    yield time_by_turns(
        "people counted by their coins",
        again(partial(binomial, entropy, people, _CHANCE)),
        lambda: np.count_nonzero(random.random(people) < _FLOAT_CHANCE),
        against="numpy's uniform, compared and counted",
        repetitions=repetitions,
        amount=people,
        things="people",
    )


NOISE = Group("noise", "Random bits, noise and coins in bulk", _measure)
