"""A quick run draws the same noise every time: what fails by chance fails again where it is looked for."""

from __future__ import annotations

import os

from epsilons.noise.entropy import system
from support.same_draws import drawing_by

WORDS = 4


def draw(name: str) -> list[list[int]]:
    with drawing_by(name):
        return [system().words(WORDS).tolist() for _ in range(2)]


def test_draws_follow_from_the_tests_name_alone() -> None:
    first, second = draw("one test")
    assert draw("one test") == [first, second]
    assert first != second, "two releases of one test share no key"
    assert draw("another test")[0] != first


def test_a_forked_child_does_not_repeat_its_parents_draws() -> None:
    with drawing_by("a parent"):
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            os.write(writer, system().bytes(8))
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 8) != system().bytes(8)


def test_names_of_ledgers_are_new_in_every_run() -> None:
    names = []
    for _ in range(2):
        with drawing_by("one test"):
            names.append(os.urandom(16))
    assert names[0] != names[1]


def test_draws_are_named_within_and_left_to_the_system_afterwards() -> None:
    outer = os.urandom
    with drawing_by("one test"):
        assert os.urandom is not outer
        assert system().private, "the code under test cannot tell"
    assert os.urandom is outer
