"""Entropy that says what a test wants it to say."""

from collections.abc import Callable

import pytest

from epsilons.noise.entropy import Entropy


class Tape(Entropy):
    """Hands out the given 64-bit words first, then an ordinary seeded stream; counts the bytes taken."""

    def __init__(self, *words: int) -> None:
        super().__init__(key=bytes(32))
        self.tape = b"".join(word.to_bytes(8, "little") for word in words)
        self.taken = 0

    def bytes(self, n: int) -> bytes:
        head, self.tape = self.tape[:n], self.tape[n:]
        self.taken += n
        return head + super().bytes(n - len(head))


class BitTape(Entropy):
    """Hands out the bits of one integer, lowest first, to the bit, so that every string can be enumerated."""

    def __init__(self, string: int) -> None:
        super().__init__(key=bytes(32))
        self.string = string

    def bits(self, n: int) -> int:
        value = self.string & ((1 << n) - 1)
        self.string >>= n
        return value


@pytest.fixture
def tape() -> Callable[..., Tape]:
    return Tape


@pytest.fixture
def bit_tape() -> Callable[[int], BitTape]:
    return BitTape
