"""Made-up people and questions for the tests of the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from epsilons.guarantee import NANO
from epsilons.ledger.consent import Word
from epsilons.ledger.registration import Application
from epsilons.ledger.values import Terms

#: Asks a question to the end and gives the number of the release.
Ask = Callable[..., int]


#: What is settled about them.
ABOUT = {"person": "id", "rows_per_person": 1, "source": None}
#: What the datasets of the tests are registered under.
TERMS = Terms("absent", ids="text", spelling="normal")


def person(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()[:16]


def key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def application(name: str, asked: Mapping[str, Word], version: str = "1", **more: Any) -> Application:
    """A dataset to be registered: {person: what their source says}."""
    words = list(dict.fromkeys(asked.values()))
    told = {
        "about": ABOUT,
        "stamp": {"folder": name},
        "terms": TERMS,
        "levels": {word.level: word.code for word in words if word.level is not None},
        **more,
    }
    people = np.array([person(who) for who in asked], "S16")
    return Application(
        name,
        version,
        people=people,
        words=words,
        asked=np.array([words.index(one) for one in asked.values()], int),
        **told,
    )


def nano(epsilon: str) -> int:
    return int(Fraction(epsilon) * NANO)
