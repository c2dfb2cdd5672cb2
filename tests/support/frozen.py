"""Frozen noise: a stream that counts what is taken, and exponential mechanisms whose costs can be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import ClassVar
from unittest.mock import patch

from epsilons.mechanisms import exponential, mixed
from epsilons.noise.entropy import Entropy
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.statistics import order
from support import planted
from support.listing import runs_of


class Meter(Entropy):
    """Counts the random bytes taken from a seeded stream."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed.to_bytes(32, "little"))
        self.taken = 0

    def bytes(self, n: int) -> bytes:
        self.taken += n
        return super().bytes(n)


class Recorder(SegmentSampler):
    """An exponential mechanism whose costs can be looked at."""

    made: ClassVar[list[dict[int, Fraction]]] = []

    def __init__(self, blocks: Iterable[Block], unit: Fraction) -> None:
        listed = list(blocks)
        Recorder.made.append({point: 2 * unit * cost for block in listed for point, cost in runs_of(block)})
        super().__init__(iter(listed), unit)


@contextmanager
def recorded_costs() -> Iterator[list[dict[int, Fraction]]]:
    """{outcome: cost in epsilons} of every exponential mechanism that is set up inside."""
    Recorder.made.clear()
    with ExitStack() as stack:
        for module in (order, exponential, mixed, planted):
            stack.enter_context(patch.object(module, "SegmentSampler", Recorder))
        yield Recorder.made
