"""The proof that a vector is one answer: complete, sound, and blind."""

import dataclasses

import numpy as np
import pytest

from epsilons.collection.proof import P, Query, ReportShape, Words, add, sub, to_words
from epsilons.collection.reports import uniform_words
from epsilons.testing import seeded
from support.collections_world import evaluate, histogram_p_value, slow_vector

SHAPES = [ReportShape(2), ReportShape(3), ReportShape(12), ReportShape(29)]


def accepted(shape: ReportShape, vector: list[int] | Words, challenge: bytes = bytes(32)) -> bool:
    query = shape.query(challenge)
    return bool(query.accept(query.show(to_words(list(vector))[None, :]))[0])


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.cells))
def test_the_owners_proof_is_the_one_of_the_definition(shape: ReportShape) -> None:
    answers = np.arange(shape.cells)
    blinds = uniform_words(seeded(1), shape.cells)
    rows = shape.prove(answers, blinds)
    for answer in answers.tolist():
        cells = [int(cell == answer) for cell in range(shape.cells)]
        assert rows[answer].tolist() == slow_vector(shape, cells, int(blinds[answer]))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.cells))
def test_what_is_shown_is_the_polynomials_at_the_point(shape: ReportShape) -> None:
    (row,) = shape.prove(np.array([1]), uniform_words(seeded(2), 1))
    query, t = shape.query(b"a challenge"), shape._point(b"a challenge")
    root = pow(7, (P - 1) // shape.order, P)
    points = [pow(root, i, P) for i in range(shape.order)]
    cells, blind, quotient = row[: shape.cells].tolist(), int(row[shape.cells]), row[shape.cells + 1 :].tolist()
    values = [blind, *cells, *[0] * (shape.order - 1 - shape.cells)]
    shown = query.show(row[None, :])[0].tolist()
    assert shown == [1, evaluate(points, values, t), evaluate([7 * x % P for x in points], quotient, t)]
    assert query.vanishing == (pow(t, shape.order, P) - 1) * pow(t - 1, -1, P) % P


@pytest.mark.parametrize("cells", [2, 12, 101])
def test_every_answer_is_accepted_on_shares(cells: int) -> None:
    shape = ReportShape(cells)
    entropy = seeded(3)
    rows = shape.prove(np.arange(cells), uniform_words(entropy, cells))
    noise = uniform_words(entropy, rows.size).reshape(rows.shape)
    for number in range(5):
        query = shape.query(bytes([number]) * 32)
        shown = add(query.show(noise), query.show(sub(rows, noise)))
        assert query.accept(shown).all()


CHEATS = {
    "two answers": [1, 1, 0, 0],
    "no answer": [0, 0, 0, 0],
    "one twice": [2, 0, 0, 0],
    "one twice, another taken away": [2, -1, 0, 0],
    "a million moved": [10**6, 1 - 10**6, 0, 0],
    "halves": [(P + 1) // 2, (P + 1) // 2, 0, 0],
    "three and two less": [1, 1, -1, 0],
    "minus": [-1, 1, 1, 0],
}


@pytest.mark.parametrize("cells", CHEATS.values(), ids=CHEATS)
def test_no_cheat_passes_with_the_best_quotient(cells: list[int]) -> None:
    shape = ReportShape(4)
    vector = slow_vector(shape, cells, 12345)
    assert not any(accepted(shape, vector, bytes([number]) * 32) for number in range(20))


def test_a_check_of_the_sum_alone_would_let_a_million_pass() -> None:
    """What the issue's linear check is worth by itself: the reason for the rest of the proof."""
    shape = ReportShape(4)
    query = shape.query(bytes(32))
    shown = query.show(to_words(slow_vector(shape, CHEATS["a million moved"], 1))[None, :])
    assert shown[0, 0] == 1
    assert not query.accept(shown)[0]


def test_any_changed_word_is_noticed() -> None:
    shape = ReportShape(12)
    (row,) = shape.prove(np.array([4]), uniform_words(seeded(4), 1))
    assert accepted(shape, row)
    for place in range(shape.words):
        changed = row.tolist()
        changed[place] = (changed[place] + 1) % P
        assert not accepted(shape, changed)


def test_a_quotient_made_for_one_point_passes_there_and_nowhere_else() -> None:
    """Whoever knew the challenge could cheat: it is drawn after the reports are in."""
    shape, cells = ReportShape(4), [5, -4, 0, 0]
    vector = slow_vector(shape, cells, 99)
    known = shape.query(bytes(32))
    one, f, q = (int(word) for word in known.show(to_words(vector)[None, :])[0])
    wanted = (f * f - f) * pow(known.vanishing, -1, P) % P
    first = shape.cells + 1
    vector[first] = (vector[first] + (wanted - q) * pow(int(known.others[0]), -1, P)) % P
    assert one == 1
    assert accepted(shape, vector)
    assert not any(accepted(shape, vector, bytes([number]) * 32) for number in range(1, 20))


@pytest.mark.parametrize("cells", [2, 12, 101])
def test_points_avoid_both_cosets(cells: int) -> None:
    shape = ReportShape(cells)
    shift = pow(7, shape.order, P)
    for number in range(300):
        t = shape._point(number.to_bytes(32))
        assert pow(t, shape.order, P) not in (0, 1, shift)


# Blindness ------------------------------------------------------------------------------------------------------------


def shown_values(shape: ReportShape, answer: int, blinds: Words) -> tuple[Query, Words]:
    query = shape.query(b"some challenge")
    return query, query.show(shape.prove(np.full(len(blinds), answer), blinds))


def test_what_is_shown_of_a_proof_is_the_same_for_every_answer() -> None:
    shape, many = ReportShape(5), 8_000
    for answer in range(5):
        query, shown = shown_values(shape, answer, uniform_words(seeded(10 + answer), many))
        # f(t) is uniform, and the rest follows from it: nothing depends on the answer.
        assert histogram_p_value(shown[:, 1]) > 1e-4
        assert (shown[:, 0] == 1).all()
        assert query.accept(shown).all()


def test_a_blind_that_is_missing_or_small_is_noticed() -> None:
    shape, many = ReportShape(5), 8_000
    _, shown = shown_values(shape, 2, np.zeros(many, np.uint64))
    assert histogram_p_value(shown[:, 1]) < 1e-9
    _, shown = shown_values(shape, 2, uniform_words(seeded(20), many) & np.uint64(7))
    assert histogram_p_value(shown[:, 1]) < 1e-9


def test_every_blind_gives_another_value_so_f_is_exactly_uniform() -> None:
    """f(t) = u L(t) + c is a bijection of u, since L(t) is not 0."""
    for cells in (2, 5, 12):
        query = ReportShape(cells).query(b"x")
        assert int(query.lagrange[-1]) != 0


@pytest.mark.parametrize("cells", [2, 5, 12])
def test_all_but_one_see_the_very_same_for_another_answer_and_blind(cells: int) -> None:
    """The view of all but one aggregator, made without the answer.

    Take any view: for every other answer there is exactly one blind, and one share of the missing aggregator, so that
    the others hold and hear the same, word for word.
    """
    shape = ReportShape(cells)
    query, entropy = shape.query(b"some challenge"), seeded(30)
    inverse = pow(int(query.lagrange[-1]), -1, P)
    blind = int(uniform_words(entropy, 1)[0])
    others = uniform_words(entropy, shape.words)
    views = set()
    for answer in range(cells):
        # f(t) = u L(t) + L_answer(t) is kept as it is for answer 0.
        moved = blind + (int(query.lagrange[0]) - int(query.lagrange[answer])) * inverse
        (row,) = shape.prove(np.array([answer]), to_words([moved]))
        missing = sub(row, others)
        views.add((others.tobytes(), query.show(missing[None, :]).tobytes()))
    assert len(views) == 1
    # A planted proof without a blind of its own: answers show.
    rows = shape.prove(np.arange(cells), to_words([blind] * cells))
    assert len({query.show(sub(row, others)[None, :]).tobytes() for row in rows}) == cells


def test_a_query_is_a_value() -> None:
    assert dataclasses.is_dataclass(ReportShape(3).query(b"x"))
    assert ReportShape(10_001).words == 10_001 + 1 + 10_240
