"""Questions to tables beside the plain query in the same process; preparation; how time grows with rows and levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pyarrow import parquet
from rosters import generator
from timing import Group, Limit, Row, Size, again, seconds, time_by_turns, time_row
from wage_table import QUESTIONS, Asked, Plain, make_file, open_dataset

import epsilons as eps
from epsilons.noise.coins import keep_digests
from epsilons.noise.entropy import system

FEW, MANY = 3, 256
ARROW, PARQUET = "Arrow", "Parquet"
_BY_LEVEL = "the plain query that reads the same columns and groups by the level"
_EXACT = "DuckDB's exact median"
#: A question at 256 levels also pays for 256 cohorts in the ledger.
_FLAT = Limit(1.5, "ratio", 0.025)
_LINEAR = Limit(1.2, "ratio")
#: At least 20 million people a second.
_COINS_PER_SECOND = 20_000_000
_CHANCES = [1 << 63, 1 << 61, 1 << 64]


class Tables:
    """The groups of one run; figures are kept, so that those of more rows and more levels can stand beside them."""

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self._found: dict[tuple[str, int, int], Row] = {}

    def groups(self) -> list[Group]:
        """What is measured, in this order."""
        several = [Group(f"rows-{n}", f"Tables of {n:,} people, 3 levels", partial(self._size, n)) for n in self._sizes]
        more = [
            Group("levels", f"256 levels instead of 3, {self._sizes[-1]:,} people", self._levels),
            Group("growth", "Ten times the rows", self._growth),
            Group("ledger", "What a question costs whatever the table: 1,000 people", self._ledger),
            Group("coins", "A coin for each person, by their digest", self._coins),
        ]
        return several + [group for group in more if group.name != "growth" or len(self._sizes) > 1]

    def _size(self, number: int, size: Size) -> Iterator[Row]:
        for source in (ARROW, PARQUET):
            yield from self._asked(size.people(number), FEW, source, size)

    def _asked(self, people: int, levels: int, source: str, size: Size) -> Iterator[Row]:
        """The preparation, then every question by turns with the plain query."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "wages.parquet"
            make_file(path, people, levels)
            given = path if source == PARQUET else parquet.read_table(path)
            plain, words = Plain(given), f"{people:,} people, {source}"
            opened: list[eps.Dataset] = []
            took = seconds(lambda: opened.append(open_dataset(given)))
            copied = seconds(plain.copy)
            yield time_row(f"preparation, {words}", [took], [copied], against="a plain copy of the table")
            for asked in QUESTIONS:
                row = _turns(asked, opened[0], plain, words, size)
                self._found.setdefault((asked.name, people, levels), row)
                yield row
                if asked.by_level != asked.ungrouped:
                    yield _alone(row, plain.ask(asked.ungrouped))
            opened[0].close()
            plain.close()

    def _levels(self, size: Size) -> Iterator[Row]:
        people = size.people(self._sizes[-1])
        for _ in self._asked(people, MANY, ARROW, size):
            pass
        for asked in QUESTIONS:
            many, few = self._found[asked.name, people, MANY], self._found[asked.name, people, FEW]
            what = f"{asked.name}, {people:,} people, {MANY} levels"
            limit = _FLAT if asked.limit is not None else None
            yield replace(many, what=what, yardstick=few.ours, against="the same at 3 levels", limit=limit)

    def _growth(self, size: Size) -> Iterator[Row]:
        for asked in QUESTIONS:
            fewer, more = (self._found[asked.name, size.people(n), FEW] for n in self._sizes[-2:])
            times = self._sizes[-1] / self._sizes[-2]
            what = f"{asked.name}, {self._sizes[-1]:,} people"
            against = f"{times:g} times the same of {self._sizes[-2]:,} people"
            limit = _LINEAR if asked.limit is not None else None
            yield replace(more, what=what, yardstick=times * fewer.ours, against=against, limit=limit)

    def _ledger(self, size: Size) -> Iterator[Row]:
        """Almost nothing to read: what remains is asking, the ledger, the plan and the release."""
        with TemporaryDirectory() as folder:
            for levels in (FEW, MANY):
                path = Path(folder) / f"{levels}.parquet"
                make_file(path, 1_000, levels)
                table = parquet.read_table(path)
                plain = Plain(table)
                file = f"sqlite:///{folder}/{levels}.ledger"
                for name, ledger in (("in memory", "memory"), ("in a SQLite file", file)):
                    with open_dataset(table, ledger) as dataset:
                        for asked in QUESTIONS[:2]:
                            yield _turns(asked, dataset, plain, f"{levels} levels, ledger {name}", size, limited=False)
                plain.close()

    def _coins(self, size: Size) -> Iterator[Row]:
        people, random = size.people(10_000_000), generator(8)
        digests = random.integers(0, 256, (people, 16), np.uint8)
        codes = random.integers(0, len(_CHANCES), people)
        yield time_by_turns(
            f"coins of {people:,} people",
            again(partial(keep_digests, system(), digests, codes, _CHANCES)),
            lambda: random.random(people) < 0.5,
            against="numpy's uniform, compared",
            repetitions=size.repetitions(9),
            pick=min,
            amount=people,
            things="people",
            limit=Limit(people / _COINS_PER_SECOND, "ours"),
        )


def _turns(asked: Asked, dataset: eps.Dataset, plain: Plain, words: str, size: Size, limited: bool = True) -> Row:
    return time_by_turns(
        f"{asked.name}, {words}",
        again(asked.ours(dataset)),
        plain.ask(asked.by_level),
        against=_EXACT if asked.by_level == asked.ungrouped else _BY_LEVEL,
        repetitions=size.repetitions(9),
        pick=min,
        limit=asked.limit if limited else None,
    )


def _alone(row: Row, query: Callable[[], object]) -> Row:
    """The same figure beside the plain query that knows no levels."""
    query()
    least = min(seconds(query).processor for _ in range(row.repetitions))
    return replace(row, what=f"{row.what}, no levels", yardstick=least, against="without levels", limit=None)
