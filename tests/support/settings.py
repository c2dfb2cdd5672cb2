"""The settings of the papers' experiments, shared by tests: populations, preferences, sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.papers.population import Users as PaperOne
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One point of a sweep: its question, and a way to make people."""

    name: str
    question: Question
    population: Any
    truth: str

    def people(self, random: np.random.Generator) -> tuple[Floats, Floats]:
        made: tuple[Floats, Floats] = self.population(random)
        return made

    def true_value(self, values: Floats) -> float:
        if self.truth == "count":
            return float(values.sum())
        if self.truth == "mean":
            return float(values.mean())
        return float(np.sort(values)[len(values) // 2])


def paper_one_sweeps() -> Iterator[PaperOne]:
    """Table I, one parameter at a time."""
    base = PaperOne()
    for density in (0.01, 0.05, *np.arange(0.1, 0.51, 0.05).round(2)):
        yield replace(base, density=float(density))
    for conservative in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
        yield replace(base, conservative=conservative)
    for strictest in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        yield replace(base, strictest=strictest, middle=0.5)
    for middle in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5):
        yield replace(base, middle=middle)


def count_settings(told: bool) -> Iterator[Setting]:
    """Paper 1's count sweeps; `told` passes the true density."""
    for paper in paper_one_sweeps():
        question = Question(Count(), density=paper.density if told else None)
        yield Setting(f"count {paper}", question, _with(paper, PaperOne.bits), "count")


def median_settings() -> Iterator[Setting]:
    """Paper 1's median sweeps, with the true spread."""
    seen = []
    for sigma in range(100, 1001, 100):
        seen.append(PaperOne(people=1001, deviation=float(sigma)))
    seen += [replace(paper, people=1001) for paper in paper_one_sweeps() if paper.density == 0.15]
    for paper in seen:
        question = Question(order.median((1, 1000), 1), spread=min(paper.deviation, 499.5))
        yield Setting(f"median {paper}", question, _with(paper, PaperOne.numbers), "median")


def paper_four_settings() -> Iterator[Setting]:
    """Ferrando et al. 2021: Figure 1 (means) and Figure 2 (medians of a standard normal)."""
    for n in (100, 1000, 10000):
        sizes, epsilons = [n, 100, 500, 1000, 5000, 10000], [10.0, 0.05, 0.1, 0.01, 0.25, 0.15]
        levels = np.repeat(epsilons, sizes)

        def means(random: np.random.Generator, levels: Floats = levels) -> tuple[Floats, Floats]:
            return levels, np.clip(random.normal(0, 5, len(levels)), -25, 25)

        yield Setting(f"mean n={n}", Question(Mean((-25.0, 25.0)), spread=5.0), means, "mean")
    for strict, loose in ((0.1, 1.0), (0.01, 10.0)):
        for part in (0.1, 0.3, 0.5, 0.7, 0.9):
            levels = np.where(np.arange(1001) < round(1001 * part), strict, loose)

            def medians(random: np.random.Generator, levels: Floats = levels) -> tuple[Floats, Floats]:
                return levels, random.normal(0, 1, len(levels))

            question = Question(order.median((-5.0, 5.0)), spread=1.0)
            yield Setting(f"median {strict}/{loose} strict {part}", question, medians, "median")


def _with(paper: PaperOne, values: Any) -> Any:
    def make(random: np.random.Generator) -> tuple[Floats, Floats]:
        return paper.epsilons(random), values(paper, random)

    return make


def measured(setting: Setting, mechanism: Any, random: np.random.Generator, datasets: int, draws: int) -> Floats:
    """Mean squared errors, one per freshly made data set, each over `draws` answers; seeded, so no verdict is luck."""
    squares = []
    entropy = seeded(2015)
    for _ in range(datasets):
        epsilons, values = setting.people(random)
        people = ArrayPeople.of(values, roster_of(epsilons))
        chosen = mechanism(people.levels) if callable(mechanism) else mechanism
        answers = chosen.simulate(setting.question, people, entropy, draws)
        squares.append(float(np.mean((answers - setting.true_value(values)) ** 2)))
    return np.array(squares)
