"""What is kept of a cohort's people beside amounts: their rosters, what is public of them, the period of their grant.

All of it is one text, the column `datasets` of a cohort, a JSON object. Under the number of a dataset stands the last
word of its source, or that word with the values of public columns; under "renews" the period, where there is one;
under "lost" that records of theirs were lost, and that they did not consent anew since (`losses`). The rosters alone
are read in `statements`, on the way of every question.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from epsilons.ledger.consent import Term
from epsilons.ledger.values import Cohort

_TERM, _LOST = "renews", "lost"


@lru_cache(10_000)
def read_public(datasets: str) -> Mapping[int, Mapping[str, Any]]:
    """What the public columns of those datasets that have any say of a cohort's people: {column: value}."""
    told = json.loads(datasets).items()
    return {int(key): said[1] for key, said in told if key.isdigit() and not isinstance(said, str)}


@lru_cache(10_000)
def read_term(datasets: str) -> Term | None:
    """The period of a cohort's grant, if it has one."""
    term = json.loads(datasets).get(_TERM)
    return None if term is None else Term(*term)


@lru_cache(10_000)
def is_lost(datasets: str) -> bool:
    """Whether every grant of a cohort's people counts as spent, until they consent anew."""
    return bool(json.loads(datasets).get(_LOST, False))


def mark_lost(datasets: str) -> str:
    """The same, of people whose records were lost."""
    return json.dumps({**json.loads(datasets), _LOST: True})


def write_rosters(
    said: Sequence[tuple[int, str]], public: Sequence[tuple[int, str]], term: Term | None = None, lost: bool = False
) -> str:
    """The inverse; public values are JSON already."""
    known = {number: json.loads(text) for number, text in public}
    told: dict[str, Any] = {str(number): [text, known[number]] if number in known else text for number, text in said}
    told |= {} if term is None else {_TERM: term}
    return json.dumps({**told, _LOST: True} if lost else told)


def change_earlier(datasets: str, earlier: int) -> str:
    """The same, with so much for what earlier periods count for; without a period as it is."""
    told = json.loads(datasets)
    if _TERM not in told:
        return datasets
    return json.dumps({**told, _TERM: read_term(datasets)._replace(earlier=earlier)})  # type: ignore[union-attr]


def count_earlier(datasets: str) -> int:
    """What earlier periods count for; 0 where there are none."""
    term = read_term(datasets)
    return 0 if term is None else term.earlier


def find_consent(stood: Sequence[tuple[int, Cohort]]) -> tuple[int, int]:
    """Of a person's (line, cohort): the line by which they last consented anew after a loss, and its place; else 0."""
    steps = enumerate(pairwise(stood), 1)
    found = [(line, n) for n, ((_, was), (line, now)) in steps if is_lost(was.datasets) and not is_lost(now.datasets)]
    return found[-1] if found else (0, 0)
