"""Pairs of worlds that differ in one private bit, behind a gateway, and how long their answers take.

Two datasets of one gateway hold the same people; one person has another value in the second. The same question is asked
of both again and again, in an order that is drawn anew for every round: whatever else the machine does falls on both
alike, and a round's two times may be exchanged unless the server tells the worlds apart.

Time is the machine's own, or one that passes by what is worked (`support.passing`): then other programs do not count,
and what a network adds is drawn.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from scipy import stats

import epsilons as eps
from epsilons.dataset.declared import arguments_of
from epsilons.service import holdings
from support.gateways import Gateway
from support.passing import PassingLoop, passing

WORLDS = ("zero", "one")
#: Seconds by which a planted server tells the worlds apart, and by which some conditions really cost more in one.
LEAK = 0.005
#: Seconds that a network near by adds on average, where time passes by what is worked: no test looks closer than that.
NETWORK = 0.002
#: So many pairs are asked at a time, each of them one question after the other.
IN_FLIGHT = 6
#: So many tests compare the times of a pair.
TESTS = 4
_LONG = "ab" * 200_000
#: What the one person has in either world.
BITS: tuple[tuple[str, Any, Any], ...] = (
    ("wage", 0.0, 100.0), ("wage", float("nan"), 50.0), ("wage", None, 1e308), ("wage", -float("inf"), 5e-324),
    ("note", "", _LONG), ("note", None, _LONG), ("note", "a" * 400_000, _LONG), ("note", "é" * 100_000, "e"),
    ("age", 15, 90), ("age", -(2**63), 2**63 - 1), ("age", None, 40), ("member", True, False), ("member", None, True),
)  # fmt: skip
#: Conditions that cost more, or might fail, on what one person has.
CONDITIONS = (
    "note LIKE '%abab%'", "note LIKE '%" + "ab" * 49 + "c%'", "NOT note LIKE 'ab%' OR note LIKE '%ba'", "note IS NULL",
    "wage > 1e300 OR wage < -1e300", "wage BETWEEN 1e-320 AND 1e308", "NOT (wage <> 50)",
    "age = 9223372036854775807 OR age < -9223372036854775807",
    "age IN (" + ", ".join(map(str, range(400))) + ")", "member = TRUE AND (age >= 16 OR note LIKE '%c%')",
    " OR ".join(f"(age > {n} AND wage < {n}.5)" for n in range(40)), None,
)  # fmt: skip
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("count", {}), ("sum", {"column": "wage"}), ("mean", {"column": "wage"}),
    ("median", {"column": "wage"}), ("variance", {"column": "age"}), ("max", {"column": "age"}),
    ("count", {"by": {"member": [True, False]}}), ("histogram", {"column": "wage", "edges": [0, 25, 50, 100]}),
    ("linear_regression", {"target": "wage", "features": ["age"]}),
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """Two worlds and a question. `slow`: reading takes longer in the second. `planted`: so does the server's answer."""

    column: str
    values: tuple[Any, Any]
    question: dict[str, Any]
    slow: bool = False
    planted: str | None = None
    #: Seconds of either.
    leak: float = LEAK


def draw_pair(drawn: random.Random, planted: str | None = None, leak: float = LEAK) -> Pair:
    """A bit and a question; one in four where reading the one person's value takes five milliseconds more."""
    column, *values = drawn.choice(BITS)
    statistic, named = drawn.choice(QUESTIONS)
    condition = None if statistic == "linear_regression" else drawn.choice(CONDITIONS)
    arguments = {**named, "share": 0.001, "fresh": True, **({} if condition is None else {"where": condition})}
    slow = planted == "ready" or drawn.random() < 0.25
    return Pair(column, (values[0], values[1]), {"statistic": statistic, "arguments": arguments}, slow, planted, leak)


def make_table(pair: Pair, world: int, people: int = 50) -> pa.Table:
    table: dict[str, list[Any]] = {
        "id": list(range(people)),
        "wage": [float(n % 100) for n in range(people)],
        "age": [15 + n for n in range(people)],
        "note": ["abc"[n % 3 :] for n in range(people)],
        "member": [n % 2 == 0 for n in range(people)],
        "epsilon": [(0.5, 1.0)[n % 2] for n in range(people)],
    }
    table[pair.column][7] = pair.values[world]
    kinds = {"age": pa.int64(), "wage": pa.float64(), "note": pa.string(), "member": pa.bool_()}
    return pa.table({name: pa.array(column, kinds.get(name)) for name, column in table.items()})


def open_pair(
    pair: Pair, folder: Path, engine: str = "duckdb", sleep: Callable[[float], None] = time.sleep
) -> tuple[Gateway, str]:
    """A gateway with both worlds, and a key."""
    folder.mkdir(parents=True)
    for world, name in enumerate(WORLDS):
        pa.parquet.write_table(make_table(pair, world), folder / f"{name}.parquet")
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nsource = "{name}.parquet"\nperson = "id"\nledger = "sqlite:///{name}.ledger"\n'
            f'engine = "{engine}"\n{"threads = 1" if engine == "duckdb" else ""}\n'
            '[bounds]\nwage = [0, 100]\nage = [15, 90]\n[preferences]\ncolumn = "epsilon"\n'
        )
        eps.Dataset.register(**arguments_of(folder / f"{name}.toml"), confirm=True).close()
    file = folder / "gateway.toml"
    file.write_text('store = "sqlite:///gateway.store"\ndatasets = ["zero.toml", "one.toml"]\n')
    made = Gateway(file)
    other = made.app.holdings["one"]
    if pair.slow:
        lane = other.lane
        other.lane = lambda number: (sleep(pair.leak), lane(number))[1]  # type: ignore[method-assign]
    for name, holding in made.app.holdings.items():
        tell = holding.turns._slot
        if pair.planted == "slot" and name == "one":
            holding.turns._slot = _later(tell, pair.leak)
        if pair.planted == "ready":
            holding.turns._slot = _at_once
    return made, made.keys.add("office", "analyst")


def _later(tell: Callable[[int], Awaitable[float]], leak: float) -> Callable[[int], Awaitable[float]]:
    """A slot by what was read, not by public facts."""

    async def slot(questions: int) -> float:
        return await tell(questions) + leak

    return slot


async def _at_once(questions: int) -> float:
    """No slot: answers leave when they are ready."""
    return 0.0


class Times:
    """Seconds that the answers of both worlds took, round by round."""

    def __init__(self) -> None:
        self.rounds: list[tuple[float, float]] = []

    def compare(self) -> list[float]:
        """Two-sample tests: signed ranks of the rounds, the two distributions, and whose answers are the earliest.

        A busy machine delays answers and never hastens them: the earliest ones tell most.
        """
        zero, one = np.array(self.rounds).T
        first = np.argsort(np.concatenate([zero, one]), kind="stable") < len(zero)
        found = [stats.wilcoxon(zero - one).pvalue, stats.ks_2samp(zero, one).pvalue]
        for part in (10, 20):
            few = max(2 * len(zero) // part, 1)
            tail, mine = stats.hypergeom(2 * len(zero), len(zero), few), int(np.sum(first[:few]))
            found.append(min(1.0, 2 * min(tail.cdf(mine), tail.sf(mine - 1))))
        assert len(found) == TESTS
        return [float(one) for one in found]


async def time_pair(
    pair: Pair, folder: Path, rounds: int, drawn: random.Random, engine: str = "duckdb", until: float = 0.0
) -> Times:
    """So many rounds, or fewer if a test says earlier that the worlds differ, by less than `until`."""
    found, loop = Times(), asyncio.get_running_loop()
    network, sleep = (NETWORK, loop.sleep) if isinstance(loop, PassingLoop) else (0.0, time.sleep)
    here, key = await asyncio.to_thread(open_pair, pair, folder, engine, sleep)
    with closing(here):
        for number in range(rounds):
            took = [0.0, 0.0]
            for world in drawn.sample((0, 1), 2):
                began = loop.time()
                path = f"/v1/datasets/{WORLDS[world]}/ask"
                seen = await here.send("POST", path, pair.question, key, f"{world}-{number}")
                took[world] = loop.time() - began + network * drawn.expovariate(1.0)
                assert seen.status == 200, (pair.question, seen.body)
            found.rounds.append((took[0], took[1]))
            if until and number % 10 == 9 and min(found.compare()) < until:
                break
    return found


def time_pairs(
    pairs: Sequence[Pair], folder: Path, rounds: int, seed: int, engine: str = "duckdb", until: float = 0.0,
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> list[Times]:  # fmt: skip
    """Several pairs at a time; where time passes by what is worked, one after the other."""

    async def run() -> list[Times]:
        room = asyncio.Semaphore(IN_FLIGHT if factory is None else 1)

        async def one(number: int, pair: Pair) -> Times:
            async with room:
                place = folder / str(number)
                return await time_pair(pair, place, rounds, random.Random(f"{seed}-{number}"), engine, until)

        return list(await asyncio.gather(*(one(number, pair) for number, pair in enumerate(pairs))))

    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(run())


def refuse_by_holm(values: Sequence[float], level: float) -> list[int]:
    """Which of several hypotheses are refused, so that one true one among them is so by at most this chance."""
    refused: list[int] = []
    for rank, place in enumerate(np.argsort(values, kind="stable")):
        if values[place] > level / (len(values) - rank):
            break
        refused.append(int(place))
    return refused


@contextmanager
def place_in_memory() -> Iterator[Path]:
    """A folder, in memory where the system has such ones: what is timed is the server, not the disk."""
    memory = Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(prefix="epsilons-timed-", dir=memory if memory.is_dir() else None)
    with folder as made, patch.object(holdings, "LANES", 1):
        yield Path(made)


def hold(
    place: Path, *, honest: int, planted: int, rounds: int, seed: int, level: float, engine: str = "duckdb",
    kinds: Sequence[str] = ("slot", "ready"), leak: float = LEAK, worked: bool = False,
) -> None:  # fmt: skip
    """Planted pairs are told apart, honest ones are not by the very same tests.

    The planted ones come first: where the machine is too busy to see a leak nothing is shown, which is said at once.
    With `worked`, time passes by what is worked.
    """
    drawn, strict = random.Random(seed), level / (honest * TESTS)
    leaking = [draw_pair(drawn, kind, leak) for _ in range(planted) for kind in kinds]
    with passing() if worked else nullcontext() as factory:
        caught = time_pairs(leaking, place / "planted", 200, seed, engine, strict, factory)
        missed = [(pair.planted, min(times.compare())) for pair, times in zip(leaking, caught, strict=True)]
        missed = [(kind, least) for kind, least in missed if least > strict]
        assert missed == [], f"a server that takes {leak:g} s longer in one world"
        pairs = [draw_pair(drawn) for _ in range(honest)]
        found = time_pairs(pairs, place / "honest", rounds, seed, engine, factory=factory)
    values = [value for times in found for value in times.compare()]
    refused = [(pairs[one // TESTS], values[one], one % TESTS) for one in refuse_by_holm(values, level)]
    assert refused == []
