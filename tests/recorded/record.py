"""Today's behaviour, frozen: some thousand seeded answers, charges, keys, plans and refusals of every front.

The cases are built from the public names alone, so that whatever lies beneath may be moved. What each of them gave is
kept in `recorded.jsonl`, one line per case; `tests/unit/test_recorded.py` compares. A line changes only on purpose:

    make recorded                                   # says which cases differ, changes nothing
    make recorded ARGS='--renew FINDING [PATTERN]'  # records those again, and says in each why it changed

FINDING is the number or name of what was found; PATTERN a regular expression that the names of the cases must match.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
import zlib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from recorded import arrays, commands, models, tables
from recorded.outcomes import Case, Outcome
from recorded.world import world

FILE = Path(__file__).with_name("recorded.jsonl")
Line = dict[str, Any]


@cache
def cases() -> dict[str, Case]:
    """{name: case}, in the order of the file."""
    found: dict[str, Case] = {}
    for module in (arrays, models, tables, commands):
        for case in module.cases():
            if case.name in found:
                raise ValueError(f"two cases are called {case.name!r}")
            found[case.name] = case
    return found


def fronts() -> list[str]:
    return list(dict.fromkeys(case.front for case in cases().values()))


def outcomes(front: str, chosen: Collection[str] | None = None) -> dict[str, Outcome]:
    """What the cases of one front give now. They are run in their order: those of a table share its ledger."""
    run = [case for case in cases().values() if case.front == front and (chosen is None or case.name in chosen)]
    with world() as here:
        return {case.name: _plain(case.run(here)) for case in run}


#: Mixed estimates weigh by exponentials and logarithms, whose last digit is a processor's own.
_FLOAT = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?")
#: Cases of shared tables that lean on others: on an answer that was stored, or on what was left.
LEANING = (
    "tables/plain/mean complete error=1e-06",
    "tables/plain/median complete error=1e-06",
    "tables/plain/where 'age != 30'",
    "tables/plain/of people",
    "tables/plain/of rows",
    "batches/plain/two again",
)


def choose(front: str) -> list[str]:
    """The cases of a quick look: those with a word that none before them has, and an eighth of the others.

    So every statistic, mechanism, option and table is among them. Stories and commands are told as a whole, since each
    step hangs on those before it, and cases that lean on others are left to the whole run.
    """
    chosen, words = [], set[str]()
    for name in (case.name for case in cases().values() if case.front == front and case.name not in LEANING):
        new = set(re.split("[/ ]+", name)) - words
        if new or front in ("stories", "commands") or zlib.crc32(name.encode()) % 8 == 0:
            chosen.append(name)
        words |= new
    return chosen


def _plain(outcome: Outcome) -> Outcome:
    plain: Outcome = json.loads(json.dumps(outcome))
    return plain


def lines() -> dict[str, Line]:
    """{name: line} of the file."""
    if not FILE.exists():
        return {}
    read = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return {line["case"]: line for line in read}


def write(kept: Iterable[Line]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in kept)
    FILE.write_text(text, encoding="utf-8")


def differences(recorded: Mapping[str, Line], now: Mapping[str, Outcome]) -> dict[str, str]:
    """{name: what differs, old and new} of those cases that do not give what is recorded."""
    found = {}
    for name, got in now.items():
        if name not in recorded:
            found[name] = "is not recorded"
            continue
        old = recorded[name]["got"]
        parts = [
            f"    {part}: was {old.get(part, '(nothing)')!r}, is {got.get(part, '(nothing)')!r}"
            for part in dict.fromkeys([*old, *got])
            if part not in old or part not in got or not _same(old[part], got[part], "mixed" in name)
        ]
        if parts:
            found[name] = "\n".join(["differs", *parts])
    return found


def _same(old: Any, new: Any, nearly: bool) -> bool:
    """As JSON writes it: 1 is not 1.0, and the order of keys counts. Nearly: but for the last digit of a float."""
    if nearly and isinstance(old, str) and isinstance(new, str) and _FLOAT.sub("", old) == _FLOAT.sub("", new):
        pairs = zip(_FLOAT.finditer(old), _FLOAT.finditer(new), strict=False)
        return all(math.isclose(float(one[0]), float(other[0]), rel_tol=4e-16) for one, other in pairs)
    return old is new or json.dumps(old) == json.dumps(new)


def renew(finding: str, pattern: str) -> list[str]:
    """Record again what differs, mark it with the finding, drop lines without a case; gives back the names."""
    old, wanted = lines(), re.compile(pattern)
    new: dict[str, Line] = {name: line for name, line in old.items() if name in cases() or not wanted.search(name)}
    changed = sorted(set(old) - set(new))
    for front in fronts():
        now = outcomes(front)
        for name in differences(old, now):
            if wanted.search(name):
                new[name] = {"case": name, "got": now[name], **({"finding": finding} if old else {})}
                changed.append(name)
    order = {name: place for place, name in enumerate(cases())}
    write(sorted(new.values(), key=lambda line: order.get(line["case"], -1)))
    return changed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare with what is recorded, or record what changed on purpose.")
    parser.add_argument("--renew", nargs="+", metavar=("FINDING", "PATTERN"), help="why it changed, and which cases")
    given = parser.parse_args(arguments)
    if given.renew is not None:
        finding, *rest = given.renew
        if not finding.strip() or len(rest) > 1:
            parser.error("--renew FINDING [PATTERN]: what was found, and a pattern of names")
        changed = renew(finding.strip(), rest[0] if rest else "")
        print(f"{len(changed)} of {len(cases())} lines renewed.")
        return 0
    status, recorded = 0, lines()
    for front in fronts():
        started = time.perf_counter()
        now = outcomes(front)
        found = differences(recorded, now)
        print(f"{front}: {len(now)} cases, {len(found)} differ, {time.perf_counter() - started:.1f} s")
        for name, words in found.items():
            status = 1
            print(f"  {name} {words}")
    for name in recorded.keys() - cases().keys():
        status = 1
        print(f"{name} is recorded, and there is no such case")
    return status


if __name__ == "__main__":
    sys.exit(main())
