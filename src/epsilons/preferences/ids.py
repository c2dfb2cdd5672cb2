"""People's ids: who is the same person, whatever holds the id."""

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from epsilons.errors import PreferenceError


def read_ids(ids: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """People's ids as plain values, which are the same whatever held them: all of them text, or all whole numbers."""
    listed = ids.to_pylist() if hasattr(ids, "to_pylist") else ids.tolist() if hasattr(ids, "tolist") else list(ids)
    people = tuple(one.item() if isinstance(one, np.generic) else one for one in listed)
    if not all(isinstance(one, str) for one in people) and not all(type(one) is int for one in people):
        rule = "Ids are whole numbers or text, all of them of one kind."
        raise PreferenceError("Somebody cannot be told by this id.", rule=rule, suggest='["ann", "bob"], or [17, 23]')
    return people


def look_up(asked: Mapping[Any, Any], ids: Iterable[Hashable]) -> list[Any]:
    """What each of these people asked for; NaN for those who are not there."""
    people, known = read_ids(ids), dict(zip(read_ids(asked), asked.values(), strict=True))
    if len({type(one) for one in (*people[:1], *list(known)[:1])}) > 1:
        rule = "1 and '1' are two people."
        raise PreferenceError("Ids are text here and whole numbers there.", rule=rule, suggest="ids of one kind")
    return [known.get(person, math.nan) for person in people]
