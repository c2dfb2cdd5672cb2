"""What is published: combination over levels, intervals, the promise, and sums that cannot be."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilons.collection import Collection, Place, Publication
from epsilons.collection.publication import LevelSums, noise_quantile
from epsilons.collection.sealing import OpeningKey
from epsilons.collection.terms import noise_variance
from epsilons.errors import PlanError, ProtocolError
from epsilons.noise import discrete_laplace_many
from epsilons.testing import seeded
from support.collections_world import World, paper_survey, sqlite_urls, survey

PLACES = tuple(Place(f"http://aggregator-{n}", str(OpeningKey.fresh().public)) for n in range(3))
LEVELS = {"strict": 0.2, "open": 1.0}


def collection(levels: dict[str, float] | None = None, **terms: Any) -> Collection:
    return Collection.start(survey(2, levels or LEVELS), PLACES, **terms)


def published(terms: Collection, sizes: list[int], sums: list[tuple[int, ...]]) -> Publication:
    batches = [
        LevelSums(name, nano, size, 0, 0, (row,) if row else ())
        for (name, nano), size, row in zip(terms.levels, sizes, sums, strict=True)
    ]
    return Publication(terms, tuple(batches))


def drawn(terms: Collection, sizes: list[int], truths: list[tuple[int, ...]], seed: int) -> Publication:
    """What honest aggregators would publish."""
    entropy = seeded(seed)
    from fractions import Fraction

    sums = []
    for (_, nano), row in zip(terms.levels, truths, strict=True):
        assert nano is not None
        scale = Fraction(nano, 10**9) / (2 if terms.neighbors == "replace" else 1)
        noise = sum(discrete_laplace_many(entropy, scale, len(row)) for _ in terms.aggregators)
        sums.append(tuple(int(n) for n in np.array(row) + noise))
    return published(terms, sizes, sums)


# Noise ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5])
def test_the_variance_is_the_definitions(scale: float) -> None:
    q = math.exp(-scale)
    slow = sum(k * k * (1 - q) / (1 + q) * q ** abs(k) for k in range(-400, 401))
    assert noise_variance(round(scale * 1e9), "absent") == pytest.approx(slow)
    assert noise_variance(round(scale * 1e9), "replace") == pytest.approx(noise_variance(round(scale * 5e8), "absent"))


@pytest.mark.parametrize("scales", [((1.0, 1.0),), ((1.0, 0.4), (1.0, 2.0)), ((1.3, 1.0), (0.6, 0.5))])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_quantile_is_the_brute_force_one_or_barely_more(
    scales: tuple[tuple[float, float], ...], level: float
) -> None:
    draws = 2
    law: dict[float, float] = {0.0: 1.0}
    for weight, scale in scales:
        q = math.exp(-scale)
        one = {weight * k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-60, 61)}
        for _ in range(draws):
            new: dict[float, float] = {}
            for (a, p), (b, r) in product(law.items(), one.items()):
                if p * r > 1e-13:
                    key = round(a + b, 9)
                    new[key] = new.get(key, 0.0) + p * r
            law = new
    far = np.array([abs(x) for x in law])
    chances = np.array(list(law.values()))
    order = np.argsort(far)
    exact = far[order][np.searchsorted(np.cumsum(chances[order]), level)]
    spread = math.sqrt(float(chances @ far**2))
    found = noise_quantile(scales, draws, level)
    assert exact - 1e-6 <= found <= exact + 0.03 * spread


def test_without_noise_nothing_is_far() -> None:
    assert noise_quantile(((1.0, 800.0),), 3, 0.95) == 0.0


# The estimate ---------------------------------------------------------------------------------------------------------


def test_weights_are_inverse_to_the_variance_of_a_level() -> None:
    result = published(collection(), [1_000, 500], [(400, 100), (200, 50)])
    weights = result.weights(assume="unrelated", density=0.3)
    sizes = np.array([1_000, 500])
    noise = 3 * np.array([noise_variance(200_000_000, "absent"), noise_variance(10**9, "absent")])
    per_level = 1 / (noise / sizes**2 + 0.3 * 0.7 / sizes)
    wanted = per_level / per_level.sum() / sizes * sizes.sum()
    assert weights == pytest.approx(wanted)
    assert sizes @ weights == pytest.approx(1_500)
    assert result.weights(assume="nothing").tolist() == [1.0, 1.0]
    related = result.weights(assume=0.05, density=0.3)
    assert weights[0] < related[0] < 1 < related[1] < weights[1]
    assert result.estimate(assume=0.05).notes[1].startswith("Errors and intervals hold if no level's expected share")
    assert result.estimate(assume="nothing").value.tolist() == [600, 150]
    for wrong in ({"assume": "x"}, {"density": 0}, {"density": True}):
        with pytest.raises(PlanError):
            result.weights(**wrong)


@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
@pytest.mark.parametrize("assume", ["nothing", "unrelated"])
def test_intervals_cover_and_errors_are_true(neighbors: str, assume: str) -> None:
    terms = collection({"strict": 0.05, "open": 1.0}, neighbors=neighbors)
    sizes, draws, hits, squares, predicted = [600, 400], np.random.default_rng(3), 0, [], []
    narrow = 0
    for run in range(400):
        # Unrelated: an option's 300 owners fall on the levels by chance.
        split = int(draws.hypergeometric(600, 400, 300)) if assume == "unrelated" else 250
        result = drawn(terms, sizes, [(split, 0), (300 - split, 0)], run)
        estimate = result.estimate(assume=assume)
        low, high = estimate.interval()
        hits += low[0] <= 300 <= high[0]
        middle = (low[0] + high[0]) / 2
        narrow += abs(300 - middle) <= (high[0] - low[0]) / 2 * 0.7
        squares.append((estimate.values[0] - 300) ** 2)
        predicted.append(estimate.errors[0])
    assert hits >= 0.925 * 400
    # Planted: intervals three tenths narrower would not do.
    assert narrow < 0.925 * 400
    assert np.sqrt(np.mean(squares)) == pytest.approx(np.mean(predicted), rel=0.12)


def test_the_error_does_not_grow_with_the_crowd() -> None:
    """Section 3's repair: about sqrt(K)*1.36 at epsilon 1, below the paper's own error from 25 alike on for K <= 16."""
    spread = math.sqrt(noise_variance(10**9, "absent"))
    assert spread == pytest.approx(1.36, abs=0.01)
    for aggregators in (2, 3, 16):
        assert math.sqrt(aggregators) * spread < math.sqrt(25 * 0.55 / 0.45)
    assert math.sqrt(3 * noise_variance(10**9, "replace")) < math.sqrt(25 * 0.55 / 0.45)
    one, many = (published(collection({"all": 1.0}), [n], [(50, 60)]).estimate() for n in (200, 20_000))
    assert one.errors.tolist() == many.errors.tolist()
    assert one.errors[0] == pytest.approx(math.sqrt(3) * spread)


def test_a_level_below_the_minimum_is_left_out_and_all_of_them_are_an_error() -> None:
    result = published(collection(), [0, 500], [(), (200, 50)])
    assert result.estimate().respondents == 500
    assert [pair[0] for pair in result.guarantee.losses] == [10**9]  # type: ignore[union-attr]
    with pytest.raises(PlanError, match="minimum"):
        published(collection(), [0, 0], [(), ()]).estimate()
    printed = str(published(collection(), [0, 0], [(), ()]))
    assert printed.count("fewer than 100 reports") == 2


# The promise ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_the_promise_and_what_it_rests_on(neighbors: str) -> None:
    result = published(collection(neighbors=neighbors), [1_000, 500], [(400, 100), (200, 50)])
    promise = result.guarantee
    assert promise is not None
    assert promise.epsilons == {0.2: 0.2, 1.0: 1.0}
    assert promise.neighbors == neighbors
    assert any("at least one aggregator is honest" in caveat for caveat in promise.caveats)
    leaks = result.leakages()
    assert [one.pure for one in leaks] == [0.2, 1.0]
    assert all(one.exact == (neighbors == "absent") for one in leaks)
    assert leaks[1].delta_at(0.0) == pytest.approx(math.tanh(0.5))
    assert "at least one aggregator" in str(result)


def test_a_publication_with_an_old_label_is_read() -> None:
    terms = Collection.start(paper_survey(2), PLACES)
    result = published(terms, [30], [(10, 12, 8)])
    document = json.loads(result.to_json())
    assert document["label"] == "Sampling Privacy (Joy)"
    assert Publication.from_dict(document | {"label": "Sampling Privacy (paper 3)"}) == result


def test_a_publication_survives_json() -> None:
    for terms, sums in ((collection(), [(400, -3), (200, 50)]),):
        result = published(terms, [1_000, 500], sums)
        assert Publication.from_dict(json.loads(result.to_json())) == result
    for broken in ({}, {"format": 1}, None, [], {"format": 1, "batches": [], "collection": {}}):
        with pytest.raises(ProtocolError):
            Publication.from_dict(broken)


# Lies -----------------------------------------------------------------------------------------------------------------


def lying(here: World, lie: list[int]) -> Publication:
    """The second aggregator adds a lie to what it sends."""
    honest = here.aggregators[1].collect

    def lies(*arguments: Any) -> bytes:
        from epsilons.collection.proof import add, to_words

        words = np.frombuffer(honest(*arguments), dtype="<u8").astype(np.uint64)
        return add(words, to_words(lie)).astype("<u8").tobytes()

    here.aggregators[1].collect = lies  # type: ignore[method-assign]
    return here.coordinator.publish()


def test_a_lie_that_is_too_large_is_noticed_and_a_small_one_moves_the_count_by_itself(tmp_path: Path) -> None:
    here = World(survey(3, {"all": 1.0}), sqlite_urls(tmp_path, 2))
    here.send([1] * 60 + [2] * 40)
    honest = here.coordinator.publish()
    room = honest._room(10**9)
    for lie in ([1 << 40, 0, 0], [0, -(1 << 40), 0], [round(101 + 2 * room), 0, 0], seeded(1).words(3).tolist()):
        with pytest.raises(ProtocolError, match="do not fit"):
            lying(here, lie)
    here.restart(1)
    here.coordinator._aggregators[1] = here.aggregators[1]
    small = lying(here, [-20, 20, 0])
    moved = np.array(small.batches[0].sums[0]) - np.array(honest.batches[0].sums[0])
    assert moved.tolist() == [-20, 20, 0]
    here.close()


def test_honest_noise_is_never_called_a_lie() -> None:
    terms = collection({"all": 0.05})
    for run in range(200):
        drawn(terms, [100], [(100, 0)], run).check()


def test_in_the_papers_rounds_every_owner_is_somewhere(tmp_path: Path) -> None:
    here = World(paper_survey(3), sqlite_urls(tmp_path, 2))
    here.send([1] * 30)
    with pytest.raises(ProtocolError, match="do not fit"):
        lying(here, [1, 0, 0, 0, 0, 0, 0, 0])
    here.close()


def test_replies_of_the_wrong_form_are_refused(tmp_path: Path) -> None:
    here = World(survey(3), sqlite_urls(tmp_path, 2))
    here.send([1] * 30)
    honest = here.aggregators[1].check
    for lie in (b"", bytes(8), b"\xff" * (30 * 24)):
        here.aggregators[1].check = lambda *_, lie=lie: lie  # type: ignore[method-assign]
        with pytest.raises(ProtocolError, match="reply"):
            here.coordinator.publish()
    # Words that are just wrong: every proof fails, so nothing at all is published.
    here.aggregators[1].check = lambda *_: bytes(30 * 24)  # type: ignore[method-assign]
    (batch,) = here.coordinator.publish().batches
    assert (batch.refused, batch.sums) == (30, ())
    here.aggregators[1].check = honest  # type: ignore[method-assign]
    assert here.coordinator.publish().batches[0].reports == 30
    here.close()


@pytest.mark.parametrize("counts", [{}, {"another": 30}, {"everyone": 30, "\x1b[2J": 1}])
def test_a_status_has_the_levels_of_the_terms(tmp_path: Path, counts: dict[str, int]) -> None:
    here = World(survey(3), sqlite_urls(tmp_path, 2))
    assert len(here.coordinator.status()) == 2
    here.aggregators[1].status = lambda _: {"round": 1, "rounds": 1, "reports": counts}  # type: ignore[method-assign]
    with pytest.raises(ProtocolError, match="levels"):
        here.coordinator.status()
    here.close()


# Terms ----------------------------------------------------------------------------------------------------------------


def test_terms_survive_their_file_and_any_change_is_another_collection(tmp_path: Path) -> None:
    terms = collection()
    terms.save(tmp_path / "c.json")
    assert Collection.load(tmp_path / "c.json") == terms
    assert Collection.load(tmp_path / "c.json").id == terms.id
    others = [collection(), collection(minimum=101), collection(neighbors="replace")]
    assert len({terms.id, *(other.id for other in others)}) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"minimum": 9},
        {"minimum": True},
        {"minimum": "100"},
        {"neighbors": "others"},
        {"aggregators": []},
        {"aggregators": [{"url": "http://x", "key": "00"}] * 2},
        {"aggregators": "x"},
        {"survey": {}},
        {"salt": 5},
        {"more": 1},
    ],
)
def test_broken_terms_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        Collection.from_dict({**collection().to_dict(), **change})


def test_aggregators_are_several_and_distinct() -> None:
    for places in (PLACES[:1], (PLACES[0], PLACES[0]), (PLACES[0], Place("ftp://x", PLACES[1].key))):
        with pytest.raises(ProtocolError):
            Collection.start(survey(2), places)
