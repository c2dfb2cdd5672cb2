"""What a call gave, as plain JSON: short enough to keep, and the same on every run of the same code.

Answers, errors, charges and mechanisms stay readable; long parts (caveats, reasons, tables of many numbers) become the
beginning of a SHA-256. Errors, intervals and what models found are rounded, since their last digits are the machine's.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import epsilons as eps
from epsilons.testing import seeded

Outcome = dict[str, Any]
#: Longer than this, a part is kept as a digest.
LONGEST = 320


@dataclass(frozen=True)
class Case:
    """Something to do; its name begins with the front that is asked. `run` gets the world of that front."""

    name: str
    run: Callable[[Any], Outcome]

    @property
    def front(self) -> str:
        return self.name.partition("/")[0]


def seed_of(name: str) -> int:
    """A seed of its own for every case, whatever cases stand before it."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


def entropy_of(name: str) -> Any:
    return seeded(seed_of(name))


def digest(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=repr)
    return "sha " + hashlib.sha256(text.encode()).hexdigest()[:10]


def undated(value: Any) -> Any:
    """Text without the number and date of a release, which depend on the day and on what was asked before."""
    return re.sub(r"release \d+ of \d{4}-\d\d-\d\d", "release (one)", value) if isinstance(value, str) else value


def short(value: Any) -> Any:
    """The value itself if it is short, else its digest."""
    text = json.dumps(value, default=repr)
    return value if len(text) <= LONGEST else digest(text)


def rounded(value: Any, digits: int = 10) -> Any:
    """Numbers to so many significant digits, in whatever holds them; what JSON does not know is a word."""
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else repr(float(value))
    if isinstance(value, Mapping):
        return {_word(key): rounded(one, digits) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [rounded(one, digits) for one in value]
    return repr(value)


def _word(key: Any) -> str:
    if isinstance(key, str):
        return key
    return f"{key:.10g}" if isinstance(key, float) else repr(key)


def attempt(do: Callable[[], Outcome]) -> Outcome:
    """What was done, or how it was refused; a warning is an error here as it is under pytest."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return do()
    except eps.EpsilonsError as error:
        told = {"what": error.what, "rule": error.rule, "hint": error.hint}
        kept = {name: _text(words) for name, words in told.items() if words}
        return {"refused": type(error).__name__, "code": error.code, **kept}
    except Exception as error:
        return {"raised": type(error).__name__, **_foreign(str(error))}


def _foreign(words: str) -> Outcome:
    """Of somebody else's errors only what a caller did wrong: which argument. What numpy says changes with numpy."""
    found = re.search(r"unexpected keyword argument '\w+'|missing \d+ required [\w -]+|takes [\w ]+ positional", words)
    return {"text": found[0]} if found else {}


def _text(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[:60]}... {digest(words)}"


def on_ladder(promise: Any) -> bool:
    """Whether preferences were rounded down."""
    return any("rounded down to a fixed ladder" in caveat for caveat in promise.caveats)


def release_outcome(release: Any, model: bool = False) -> Outcome:
    """An answer with its error, promise and price."""
    value = repr(rounded(release.value, 9)) if model else repr(release.value)
    promise = release.guarantee
    interval, population = _interval(release, "roster"), _interval(release, "population")
    losses = {_granted(granted): loss for granted, loss in promise.losses}
    charges = {_word(granted): spent for granted, spent in release.charges.items()}
    return {
        "statistic": _text(release.statistic),
        "value": _text(value),
        "error": rounded(release.error),
        "mechanism": release.mechanism,
        "charges": short(charges),
        "levels": digest(list(release.levels.items())),
        "interval": interval,
        "population": "the same" if population == interval else population,
        "promise": f"{promise.kind}, {promise.neighbors}, {promise.imputes}, {on_ladder(promise)}",
        "losses": short(losses),
        "caveats": digest(list(promise.caveats)),
        "assumption": digest(release.assumption),
        "why": digest(release.why),
        **({"details": short(rounded(dict(release.details)))} if release.details else {}),
        **({} if release.private != promise.caveats[0].startswith("NOT PRIVATE") else {"private": release.private}),
    }


def _granted(nano: int | None) -> str:
    return "public" if nano is None else str(nano)


def _interval(release: Any, target: str) -> Any:
    try:
        return short(rounded(release.interval(0.95, target=target), 9))
    except eps.EpsilonsError as error:
        return f"{error.code}: {_text(error.rule)}"


def plan_outcome(plan: Any) -> Outcome:
    """Every row of a plan, in its order."""
    told = plan.to_dict()
    rows = []
    for row in plan.rows:
        numbers = [rounded(one) for one in (row.error, row.worst_error, row.used)]
        charges = {_word(granted): spent for granted, spent in row.charges.items()}
        rows.append(
            [row.mechanism, *numbers, charges, rounded(dict(row.options)), digest([row.reason, row.assumption])]
        )
    best = rows[0]
    got = {"best": best[0], "error": best[1], "worst": best[2], "used": best[3], "charges": short(best[4])}
    got |= {"options": short(best[5]), "order": [row[0] for row in rows], "errors": [row[1:4] for row in rows]}
    return {
        **got,
        "rows": digest(rows),
        "statistic": told["statistic"],
        "share": rounded(told["share"]),
        "floor": rounded(told["floor"]),
        "people": told["people"],
        "assumption": digest(told["assumption"]),
    }
