import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import epsilons.noise
from epsilons.noise import Entropy, system
from epsilons.testing import seeded

SOURCE = str(Path(epsilons.noise.__file__).parents[2])


def test_the_system_is_private_and_keyed_afresh() -> None:
    first, second = system(), system()
    assert first.private
    assert first.bytes(32) != second.bytes(32)


def test_seeds_repeat_and_say_that_they_are_not_private() -> None:
    assert not seeded(7).private
    assert seeded(7).bytes(100) == seeded(7).bytes(100)
    assert seeded(7).bytes(100) != seeded(8).bytes(100)
    assert seeded(-7).bytes(100) != seeded(7).bytes(100)


def test_a_chosen_key_is_never_private() -> None:
    assert not Entropy(key=os.urandom(32)).private


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_has_32_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Entropy(key=bytes(length))


def test_the_stream_is_aes_256_ctr_from_counter_zero() -> None:
    key = bytes(range(32))
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    expected = block.update(b"".join(counter.to_bytes(16, "big") for counter in range(3)))
    assert Entropy(key).bytes(48) == expected


def test_no_bit_is_handed_out_twice() -> None:
    whole = seeded(3).bytes(64)
    entropy = seeded(3)
    assert entropy.bytes(5) + entropy.bytes(0) + entropy.bytes(59) == whole


def test_words_and_bits_read_the_stream() -> None:
    stream = seeded(3).bytes(32)
    words = seeded(3).words(4)
    assert words.dtype == np.uint64
    assert [int(word) for word in words] == [int.from_bytes(stream[i : i + 8], "little") for i in (0, 8, 16, 24)]
    assert seeded(3).bits(64) == int(words[0])
    assert seeded(3).bits(256) == int.from_bytes(stream, "little")
    assert seeded(3).bits(0) == 0


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 63, 65])
def test_bits_are_uniform_below_two_to_the_n(n: int) -> None:
    entropy = seeded(n)
    values = [entropy.bits(n) for _ in range(400)]
    assert all(0 <= value < 1 << n for value in values)
    for position in range(n):
        ones = sum(value >> position & 1 for value in values)
        assert 140 < ones < 260


def test_a_stream_cannot_be_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(system())


def test_a_forked_child_does_not_repeat_its_parent() -> None:
    script = (
        "import os, epsilons.noise.entropy as e\n"
        "stream = e.system(); stream.bytes(3); read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.write(write, stream.bytes(32)); os._exit(0)\n"
        "os.wait(); print(os.read(read, 32) != stream.bytes(32))\n"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.strip() == "True"


def test_a_seeded_stream_survives_a_change_of_process(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = seeded(5).bytes(16)
    stream = seeded(5)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert stream.bytes(16) == expected


def test_importing_the_room_loads_neither_flint_nor_cryptography() -> None:
    script = (
        "import sys, epsilons.noise, epsilons.testing\n"
        "print([name for name in ('flint', 'cryptography', 'scipy', 'random') if name in sys.modules "
        "and name not in before])\n"
    )
    script = "import sys, numpy; before = set(sys.modules)\n" + script
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.strip() == "[]"
