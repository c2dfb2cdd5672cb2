"""The repair's promise: each aggregator's own noise is enough, is its own, and is drawn once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from epsilons.collection import Aggregator
from epsilons.collection.proof import Words, to_integers, to_words
from epsilons.collection.reports import read_ids
from epsilons.collection.terms import Collection, noise_variance
from epsilons.guarantee import NANO
from epsilons.noise import Entropy, discrete_laplace_many
from epsilons.testing import seeded
from support.collections_world import World, sqlite_urls, survey

OPTIONS = 1_500
EPSILON = 0.7


def counter() -> Callable[[], Entropy]:
    """A seeded entropy for every draw, another one each time."""
    numbers = iter(range(1_000, 10_000))
    return lambda: seeded(next(numbers))


class NoHalf(Aggregator):
    """Planted: "replace" moves two cells, and this one forgets it."""

    def _noise(self, terms: Collection, level: int, size: int) -> Words:
        nano = terms.levels[level][1]
        assert nano is not None
        return to_words(discrete_laplace_many(self._entropy(), Fraction(nano, NANO), size).tolist())


class Shared(Aggregator):
    """Planted: everybody draws the same noise, so whoever is one of them can take it away."""

    def _noise(self, terms: Collection, level: int, size: int) -> Words:
        nano = terms.levels[level][1]
        assert nano is not None
        return to_words(discrete_laplace_many(seeded(5), Fraction(nano, NANO), size).tolist())


class Split(Aggregator):
    """Planted: the noise is enough only if everybody else is honest (each adds 1/sqrt(K) of it)."""

    def _noise(self, terms: Collection, level: int, size: int) -> Words:
        nano = terms.levels[level][1]
        assert nano is not None
        scale = Fraction(nano, NANO) * Fraction(17, 10)
        return to_words(discrete_laplace_many(self._entropy(), scale, size).tolist())


class Redraws(Aggregator):
    """Planted: forgets its sum, so a retry gets fresh noise."""

    def collect(self, collection: bytes, level: int, ids: bytes) -> bytes:
        with self._store.read() as connection:
            kept = connection.execute("SELECT id, share FROM reports").fetchall()
        answer = super().collect(collection, level, ids)
        with self._store.write() as connection:
            connection.execute("UPDATE batches SET accepted = NULL, sums = NULL")
            connection.execute("DELETE FROM journal WHERE kind = 'collect'")
            connection.executemany("UPDATE reports SET share = :share WHERE id = :id", [dict(row) for row in kept])
        return answer


def added(folder: Path, kind: type[Aggregator] = Aggregator, neighbors: str = "absent") -> list[np.ndarray]:
    """What each aggregator really added to its cells: its answer less the sum of its shares, which a twin without
    noise tells."""

    class Twin(kind):  # type: ignore[misc, valid-type]
        quiet = False

        def _noise(self, terms: Collection, level: int, size: int) -> Words:
            return np.zeros(size, np.uint64) if self.quiet else super()._noise(terms, level, size)

    folder.mkdir()
    here = World(
        survey(OPTIONS, {"all": EPSILON}),
        sqlite_urls(folder, 2),
        kind=Twin,
        neighbors=neighbors,
        entropy=counter(),
        witness=False,  # the twin has its store back as it was
    )
    here.send([1] * 5 + [2] * 5)
    here.coordinator.close(1)
    noise = []
    for place in range(2):
        aggregator = here.aggregators[place]
        ids = aggregator.present(here.collection.id, 0)
        aggregator.check(here.collection.id, 0, bytes(32), ids)
        copy = Path(here.urls[place].removeprefix("sqlite:///"))
        here.stores[place].close()
        saved = copy.read_bytes()
        noisy = np.array(words(aggregator.collect(here.collection.id, 0, ids)), dtype=object)
        here.stores[place].close()
        copy.write_bytes(saved)
        aggregator.quiet = True
        bare = np.array(words(aggregator.collect(here.collection.id, 0, ids)), dtype=object)
        noise.append(np.array(to_integers(to_words(noisy - bare))))
    here.close()
    return noise


def words(body: bytes) -> list[int]:
    return np.frombuffer(body, dtype="<u8").tolist()


def p_value(noise: np.ndarray, scale: float) -> float:
    """Chi-square of draws against the discrete Laplace law with q = exp(-scale)."""
    q = math.exp(-scale)
    edge = 0
    while len(noise) * q ** (edge + 2) / (1 + q) > 8:
        edge += 1
    chances = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-edge, edge + 1)]
    tail = q ** (edge + 1) / (1 + q)
    seen = [int((noise == k).sum()) for k in range(-edge, edge + 1)]
    seen = [int((noise < -edge).sum()), *seen, int((noise > edge).sum())]
    return float(chisquare(seen, np.array([tail, *chances, tail]) * len(noise)).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize(("neighbors", "scale"), [("absent", EPSILON), ("replace", EPSILON / 2)])
def test_each_aggregator_adds_the_full_noise_by_itself(tmp_path: Path, neighbors: str, scale: float) -> None:
    one, two = added(tmp_path / "true", neighbors=neighbors)
    assert p_value(one, scale) > 1e-3
    assert p_value(two, scale) > 1e-3
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.1
    assert abs(one.var() / noise_variance(round(EPSILON * NANO), neighbors) - 1) < 0.2


@pytest.mark.statistical
def test_planted_noise_is_rejected(tmp_path: Path) -> None:
    one, _ = added(tmp_path / "half", NoHalf, "replace")
    assert p_value(one, EPSILON / 2) < 1e-6
    one, _ = added(tmp_path / "split", Split)
    assert p_value(one, EPSILON) < 1e-6
    one, two = added(tmp_path / "shared", Shared)
    assert p_value(one, EPSILON) > 1e-3
    assert np.corrcoef(one, two)[0, 1] > 0.9


# The loss, by going through all outcomes ------------------------------------------------------------------------------


def worst_loss(scale: float, moves: tuple[int, ...], reach: int = 30) -> float:
    """max |ln P(o)/P'(o)| over outcomes of the cells that a change moves; all other aggregators' noise is known."""

    def log_chance(k: int) -> float:
        return math.log(math.tanh(scale / 2)) - scale * abs(k)

    worst = 0.0
    for outcome in product(range(-reach, reach + 1), repeat=len(moves)):
        before = sum(log_chance(k) for k in outcome)
        after = sum(log_chance(k - move) for k, move in zip(outcome, moves, strict=True))
        worst = max(worst, abs(before - after))
    return worst


def test_the_loss_is_epsilon_for_one_honest_aggregator() -> None:
    # An answer against none moves one published cell: cell 0 is not published.
    assert worst_loss(EPSILON, (1,)) == pytest.approx(EPSILON)
    # An answer against another moves two, down and up.
    assert worst_loss(EPSILON / 2, (-1, 1)) == pytest.approx(EPSILON)
    # The planted bugs: no half under "replace"; none counted as a published cell.
    assert worst_loss(EPSILON, (-1, 1)) == pytest.approx(2 * EPSILON)


def test_cell_none_is_never_published(tmp_path: Path) -> None:
    here = World(survey(3), sqlite_urls(tmp_path, 2))
    assert list(here.collection.cells) == [1, 2, 3]
    here.send([0] * 12)
    assert here.coordinator.publish().batches[0].sums == ((0, 0, 0),)
    here.close()


def collected(here: World) -> tuple[bytes, bytes]:
    """The same batch asked for twice, by way of a restart."""
    here.send([1] * 12)
    here.coordinator.close(1)
    ids = here.aggregators[0].present(here.collection.id, 0)
    here.aggregators[0].check(here.collection.id, 0, bytes(32), ids)
    first = here.aggregators[0].collect(here.collection.id, 0, ids)
    here.restart(0)
    second = here.aggregators[0].collect(here.collection.id, 0, ids)
    here.close()
    return first, second


def test_a_retry_gets_the_same_bytes(tmp_path: Path) -> None:
    first, second = collected(World(survey(40, {"all": 0.01}), sqlite_urls(tmp_path, 2)))
    assert first == second


def test_a_planted_aggregator_that_draws_again_is_seen(tmp_path: Path) -> None:
    here = World(survey(40, {"all": 0.01}), sqlite_urls(tmp_path, 2), kind=Redraws, witness=False)
    first, second = collected(here)
    assert first != second


def test_of_two_requests_at_the_same_time_one_noise_remains(tmp_path: Path) -> None:
    """The loser of the race returns what the winner stored."""
    here = World(survey(40, {"all": 0.01}), sqlite_urls(tmp_path, 2))
    here.send([1] * 12)
    here.coordinator.close(1)
    aggregator, collection = here.aggregators[0], here.collection.id
    ids = aggregator.present(collection, 0)
    aggregator.check(collection, 0, bytes(32), ids)
    winner: list[bytes] = []
    draw = aggregator._noise

    def slow(*arguments: object) -> Words:
        drawn = draw(*arguments)  # type: ignore[arg-type]
        aggregator._noise = draw  # type: ignore[method-assign]
        winner.append(aggregator.collect(collection, 0, ids))
        return drawn

    aggregator._noise = slow  # type: ignore[method-assign, assignment]
    assert aggregator.collect(collection, 0, ids) == winner[0]
    assert aggregator.collect(collection, 0, ids) == winner[0]
    listed = read_ids(ids)
    assert b"".join(listed) == ids
    here.close()


def test_noise_follows_each_levels_epsilon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from epsilons.collection import aggregator as core

    asked: list[tuple[Fraction, int]] = []

    def recorded(entropy: Entropy, scale: Fraction, size: int) -> object:
        asked.append((scale, size))
        return discrete_laplace_many(entropy, scale, size)

    monkeypatch.setattr(core, "discrete_laplace_many", recorded)
    levels = {"a": 0.1, "b": 1.5}
    for neighbors, divided in (("absent", 1), ("replace", 2)):
        (tmp_path / neighbors).mkdir()
        here = World(survey(4, levels), sqlite_urls(tmp_path / neighbors, 2), neighbors=neighbors)
        here.send([1] * 24, [0, 1] * 12)
        here.coordinator.publish()
        here.close()
        wanted = [(Fraction(epsilon).limit_denominator(1000) / divided, 4) for epsilon in levels.values()]
        assert asked == [wanted[0]] * 2 + [wanted[1]] * 2
        asked.clear()
