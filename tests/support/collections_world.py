"""Small collections for tests: aggregators in this process, their stores, and what owners and cheaters send."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epsilons.collection import Aggregator, Collection, Coordinator, OwnerClient, Place, Store
from epsilons.collection.proof import P, ReportShape, Words, to_words
from epsilons.collection.reports import STORED, Report, explicit_place, split_vector, uniform_words
from epsilons.collection.sealing import OpeningKey, SealingKey, purpose
from epsilons.collection.store import TABLES as STORE_TABLES
from epsilons.local import SamplingPrivacy, Survey
from epsilons.noise import Entropy, system
from epsilons.service.aggregator import Route
from epsilons.storage.base import name_tables

#: At this epsilon a discrete Laplace draw is other than 0 with probability below 2^-1000: sums show exact counts.
NO_NOISE = 700.0


def options(count: int) -> tuple[str, ...]:
    return tuple(f"option {number}" for number in range(1, count + 1))


def survey(count: int = 3, levels: dict[str, float] | None = None) -> Survey:
    return Survey("Which one?", options(count), None, levels or {"everyone": NO_NOISE})


def paper_survey(count: int = 3, sampling: str = "0.45") -> Survey:
    return Survey("Which one?", options(count), SamplingPrivacy(count, sampling))


def fill(route: Route, collection: bytes, number: int) -> str:
    """The path of a route."""
    return re.sub(
        r"\(\?P<(\w+)>[^()]*\)", lambda part: {"collection": collection.hex()}.get(part[1], str(number)), route.path
    )


class World:
    """K aggregators with their stores; `restart` is what remains of one after its process ended.

    `witness` may be a folder, for a head of each.
    """

    def __init__(
        self,
        question: Survey,
        urls: Sequence[str],
        *,
        minimum: int = 10,
        neighbors: str = "absent",
        kind: type[Aggregator] = Aggregator,
        entropy: Callable[[], Entropy] = system,
        witness: Any = None,
    ) -> None:
        self.urls, self.kind, self.entropy, self.witness = list(urls), kind, entropy, witness
        self.keys = [OpeningKey.fresh() for _ in urls]
        self.stores = [Store(url) for url in urls]
        self.aggregators = [self._make(place) for place in range(len(urls))]
        places = [Place(f"http://aggregator-{n}", one.key) for n, one in enumerate(self.aggregators)]
        self.collection = Collection.start(question, places, minimum=minimum, neighbors=neighbors)
        self.coordinator = Coordinator(self.collection, self.aggregators)
        self.coordinator.enter()
        self.client = OwnerClient(self.collection)

    def _make(self, place: int) -> Aggregator:
        witness = self.witness / f"{place}.head" if isinstance(self.witness, Path) else self.witness
        return self.kind(self.stores[place], self.keys[place], entropy=self.entropy, witness=witness)

    def restart(self, place: int) -> None:
        self.aggregators[place].shut()
        self.stores[place].close()
        self.stores[place] = Store(self.urls[place])
        self.aggregators[place] = self._make(place)

    def send(self, truths: Any, levels: Any = 0) -> None:
        """Everybody reaches everyone."""
        for number, reports in enumerate(self.client.reports(truths, levels), 1):
            for aggregator, some in zip(self.aggregators, reports, strict=True):
                assert set(aggregator.take(self.collection.id, some)) <= {STORED}
            if number < self.collection.rounds:
                self.coordinator.close(number)

    def close(self) -> None:
        for aggregator, store in zip(self.aggregators, self.stores, strict=True):
            aggregator.shut()
            store.close()


def sqlite_urls(folder: Path, count: int = 3) -> list[str]:
    return [f"sqlite:///{folder}/{number}.store" for number in range(count)]


#: The tables of a store.
TABLES = name_tables(STORE_TABLES)


def dump(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that a store holds."""
    with store.read() as connection:
        return {
            name: sorted(map(tuple, connection.execute(f"SELECT * FROM {name}").fetchall()), key=repr)
            for name in TABLES
        }


def put_back(store: Store, dumped: dict[str, list[tuple[Any, ...]]]) -> None:
    """These tables of a store are what they were, behind its aggregator's back."""
    with store.write() as connection:
        for name, rows in dumped.items():
            connection.execute(f"DELETE FROM {name}")
            connection.insert_many(name, rows)


def evaluate(points: Sequence[int], values: Sequence[int], at: int) -> int:
    """The polynomial through the points, by Lagrange's formula: the definition, slowly."""
    found = 0
    for j, (x, y) in enumerate(zip(points, values, strict=True)):
        above = below = 1
        for i, other in enumerate(points):
            if i != j:
                above, below = above * (at - other) % P, below * (x - other) % P
        found = (found + y * above * pow(below, -1, P)) % P
    return found


def slow_vector(shape: ReportShape, cells: Sequence[int], blind: int) -> list[int]:
    """Cells, blind and the quotient at the other points, from the definition; for cheaters the quotient is rounded to
    whatever division by Z gives, which is the best that they can do."""
    root = pow(7, (P - 1) // shape.order, P)
    points = [pow(root, i, P) for i in range(shape.order)]
    values = [blind, *(cell % P for cell in cells), *[0] * (shape.order - 1 - len(cells))]
    quotient = []
    for i in range(shape.order):
        y = 7 * pow(root, i, P) % P
        f = evaluate(points, values, y)
        vanishing = (pow(y, shape.order, P) - 1) * pow(y - 1, -1, P) % P
        quotient.append((f * f - f) * pow(vanishing, -1, P) % P)
    return [cell % P for cell in cells] + [blind, *quotient]


def seal(
    collection: Collection, vector: Sequence[int] | Words, report: bytes, number: int = 1, level: int = 0
) -> list[Report]:
    """Shares of any vector at all, sealed as an owner's are."""
    places = range(len(collection.aggregators))
    purposes = [purpose(collection.id, place, number, level, report) for place in places]
    seeds = [system().bytes(32) for _ in purposes[1:]]
    pieces = split_vector(to_words(list(vector)), purposes, explicit_place(report, len(purposes)), seeds)
    return [
        Report(report, number, level, SealingKey.from_text(place.key).seal(piece, what_for))
        for place, piece, what_for in zip(collection.aggregators, pieces, purposes, strict=True)
    ]


def cheat(collection: Collection, cells: Sequence[int], report: bytes, level: int = 0) -> list[Report]:
    """A report whose vector is not one answer."""
    blind = int(uniform_words(system(), 1)[0])
    return seal(collection, slow_vector(collection.shape, cells, blind), report, 1, level)


def histogram_p_value(words: Words, cells: int = 16) -> float:
    """Whether words look uniform on 0..p-1, by their top bits and by their low bits; the smaller p-value."""
    from scipy.stats import chisquare

    top = np.bincount((words >> np.uint64(60)).astype(np.int64), minlength=16)
    low = np.bincount((words & np.uint64(cells - 1)).astype(np.int64), minlength=cells)
    return min(float(chisquare(top).pvalue), float(chisquare(low).pvalue))
