"""Which data a question was asked of: the steward's label, never anything read from the contents.

The same question about the same version gets the stored answer. Without a label the version of files is where they lie,
how long they are and when they were written; of anything else it is this one object, so that nothing asked of one frame
is ever answered from another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epsilons.errors import DataError
from epsilons.noise.entropy import system


@dataclass(frozen=True)
class Version:
    """`label` goes into every question; `words` are for people."""

    label: str
    words: str


def version_of(given: Any, files: Sequence[str]) -> Version:
    """The steward's label, or what stands in for it."""
    if given is not None:
        if not isinstance(given, str) or not given.strip() or len(given) > 200:
            raise DataError("A version is a short label.", rule="It names the data's state.", hint='version="2026-11"')
        return Version(f"label:{given}", given)
    if files:
        facts = [[path, os.stat(path).st_size, os.stat(path).st_mtime_ns] for path in files]
        return Version(f"files:{json.dumps(facts)}", "no label: path, size and time of the files stand in for it")
    label = system().bytes(16).hex()
    return Version(f"object:{label}", "no label: answers are kept for this object only")
