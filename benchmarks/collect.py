"""Aggregators that need not trust each other: what a report costs in bytes and time, and how many HTTP takes a second.

Rates of one process are per second of processor time, which a busy machine does not change; those over HTTP are per
second on the clock, with the sender on the same machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from page import write_between
from report import facts
from rich.console import Console

from epsilons.collection import Aggregator, Collection, Coordinator, HttpAggregator, OwnerClient, Place, Store
from epsilons.collection.proof import total
from epsilons.collection.reports import Report, explicit_place, split_vector, uniform_words, write_reports
from epsilons.collection.sealing import ID_BYTES, OpeningKey, purpose
from epsilons.local import Survey
from epsilons.noise import system

PAGE = Path(__file__).parents[1] / "docs" / "aggregators.md"
START, END = "<!-- results: written by `make bench-collect ARGS=--write` -->", "<!-- end of results -->"

AGGREGATORS = 3
#: Options of the question, and how many owners are measured with.
SIZES = {1: 6_000, 10: 6_000, 100: 4_000, 10_000: 60}
#: Reports in one request, connections at the same time, reports in all.
BATCHES = ((1, 32, 3_000), (100, 4, 12_000), (1_000, 2, 20_000))

Table = tuple[Sequence[str], list[Sequence[str]]]


def survey(options: int) -> Survey:
    return Survey("Which?", tuple(f"option {n}" for n in range(1, options + 1)), None, {"everyone": 1.0})


def rate(count: int, action: Callable[[], object]) -> float:
    """How many a second of processor time."""
    start = time.process_time()
    action()
    return count / (time.process_time() - start)


def one_process(options: int, owners: int, folder: Path) -> Sequence[str]:
    """A row: bytes of an owner, and rates of every step."""
    keys = [OpeningKey.fresh() for _ in range(AGGREGATORS)]
    aggregators = [Aggregator(Store(f"sqlite:///{folder}/{options}-{n}.store"), key) for n, key in enumerate(keys)]
    places = [Place(f"http://aggregator-{n}", one.key) for n, one in enumerate(aggregators)]
    collection = Collection.start(survey(options), places, minimum=10)
    coordinator = Coordinator(collection, aggregators)
    coordinator.enter()
    truths = np.arange(owners) % (options + 1)
    vectors = collection.shape.prove(truths[:1], uniform_words(system(), 1))
    splits = rate(owners, lambda: _split(collection, vectors[0], owners))
    rows = uniform_words(system(), owners * collection.shape.words).reshape(owners, -1)
    sums = rate(owners, lambda: total(rows))
    made: list[list[Report]] = []
    seals = rate(owners, lambda: made.extend(OwnerClient(collection).reports(truths)[0]))
    stored = rate(owners, lambda: _take(aggregators[0], collection.id, made[0]))
    for aggregator, reports in zip(aggregators[1:], made[1:], strict=True):
        _take(aggregator, collection.id, reports)
    size = sum(len(write_reports(reports)) for reports in made) / owners
    published = rate(AGGREGATORS * owners, lambda: coordinator.publish())
    return [f"{options:,}", f"{size:,.0f}", *(f"{figure:,.0f}" for figure in (splits, sums, seals, stored, published))]


def _split(collection: Collection, vector: np.ndarray, owners: int) -> None:
    entropy = system()
    for _ in range(owners):
        report = entropy.bytes(ID_BYTES)
        purposes = [purpose(collection.id, place, 1, 0, report) for place in range(AGGREGATORS)]
        seeds = [entropy.bytes(32) for _ in purposes[1:]]
        split_vector(vector, purposes, explicit_place(report, AGGREGATORS), seeds)


def _take(aggregator: Aggregator, collection: bytes, reports: Sequence[Report]) -> None:
    for start in range(0, len(reports), 1_000):
        aggregator.take(collection, reports[start : start + 1_000])


def over_http(batch: int, connections: int, count: int, folder: Path) -> Sequence[str]:
    """A row: one aggregator in a process of its own, asked by several connections at once."""
    stem = folder / f"http-{batch}"
    options = ["--store", f"sqlite:///{stem}.store", "--key", f"{stem}.key", "--token", f"{stem}.token"]
    command = [sys.executable, "-m", "epsilons", "collect", "aggregator", *options, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        url, key = process.stdout.readline().split()
        other = Place("http://nobody", str(OpeningKey.fresh().public))
        collection = Collection.start(survey(10), [Place(url, key), other])
        HttpAggregator(url, token=Path(f"{stem}.token").read_text().strip()).enter(collection.to_dict())
        reports = OwnerClient(collection).reports(np.arange(count) % 11)[0][0]
        parts = [reports[number::connections] for number in range(connections)]

        def send(some: list[Report]) -> None:
            line = HttpAggregator(url)
            for start in range(0, len(some), batch):
                line.take(collection.id, some[start : start + batch])
            line.shut()

        threads = [threading.Thread(target=send, args=(some,)) for some in parts]
        used, start_time = _processor_seconds(process.pid), time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - start_time
        used = _processor_seconds(process.pid) - used
        return [f"{batch:,}", f"{connections}", f"{count / wall:,.0f}", f"{count / used:,.0f}" if used else ""]
    finally:
        process.kill()
        process.wait()


def _processor_seconds(process: int) -> float:
    """What a process used so far, where the system says so."""
    try:
        parts = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(parts[11]) + int(parts[12])) / 100


def measure(quick: bool, notes: Console) -> list[tuple[str, Table]]:
    """Both tables."""
    share = 20 if quick else 1
    with tempfile.TemporaryDirectory(prefix="epsilons-bench-") as name:
        os.environ["XDG_STATE_HOME"] = name  # where heads of the stores are kept
        folder, rows, lines = Path(name), [], []
        for options, owners in SIZES.items():
            notes.print(f"{options:,} options")
            rows.append(one_process(options, max(10, owners // share), folder))
        for batch, connections, count in BATCHES:
            notes.print(f"HTTP, {batch:,} reports a request")
            lines.append(over_http(batch, connections, max(connections, count // share), folder))
    head = (
        "options",
        "bytes an owner",
        "split",
        "summed",
        "split, proved and sealed",
        "opened and stored",
        "published",
    )
    first = f"{AGGREGATORS} aggregators; owners in a second of one processor (published: shares, checked and added up):"
    second = "HTTP, 10 options, one aggregator, SQLite, each reply after the disk has the report; reports a second:"
    over = ("reports a request", "connections", "on the clock", "by the aggregator's processor time")
    return [(first, (head, rows)), (second, (over, lines))]


def markdown(tables: list[tuple[str, Table]]) -> list[str]:
    """The tables as a page has them."""
    lines = []
    for title, (head, rows) in tables:
        lines += [title, "", f"| {' | '.join(head)} |", "|" + "---:|" * len(head)]
        lines += [*(f"| {' | '.join(row)} |" for row in rows), ""]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and on request write to the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything runs")
    parser.add_argument("--write", action="store_true", help="put the results into docs/aggregators.md")
    options = parser.parse_args(arguments)
    if options.write and options.quick:
        parser.error("--write needs a whole run")
    lines = markdown(measure(options.quick, Console(stderr=True)))
    load = max(1.0, os.getloadavg()[0])
    print("\n".join(lines))
    if options.write:
        known = facts()
        told = (
            f"Of {known['date']}: epsilons {known['epsilons']}, Python {known['python']}, {known['cores']} cores, "
            f"at a load of {load:.1f} on average."
        )
        write_between(PAGE, (START, END), [told, "", *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
