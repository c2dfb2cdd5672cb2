"""What makes two questions the same: everything that affects the answer or its promise, and nothing else.

The version label and the table's columns stand for the data, the epoch for the roster. Never anything read from the
data: that two questions are the same must not say anything about a value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from epsilons.dataset.asking import Terms
from epsilons.noise.entropy import system


def question_key(
    terms: Terms, version: str, epoch: int, meaning: Mapping[str, Any], manner: Mapping[str, Any], fresh: bool
) -> bytes:
    """32 bytes, the same for the same question; `fresh` makes it another one every time."""
    about = {
        "columns": [[kind.name, kind.family] for kind in terms.schema.values()],
        "version": version,
        "epoch": epoch,
        "terms": [terms.neighbors, terms.rows, sorted(terms.complete)],
        "asked": meaning,
        "manner": manner,
        "fresh": system().bytes(32).hex() if fresh else None,
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).digest()
