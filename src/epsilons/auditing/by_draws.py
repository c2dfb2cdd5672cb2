"""A lower bound on a claim's loss from draws, in two rounds.

The first tries many pairs, and several views of each, with few draws; the second draws afresh on the pair that looked
worst for a level, in the view that showed it, so that the choice costs no confidence.

Neighbours are drawn in turns, by lot, so that what drifts from call to call is no difference between them. Whether a
function remembers what it was asked about is tried as well: on a few pairs the answer that comes next, to other data,
is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from epsilons.auditing.claims import Claim, Data
from epsilons.auditing.draws import bound_loss, promise_loss
from epsilons.auditing.made_up import Pair
from epsilons.auditing.report import Finding
from epsilons.auditing.views import View, as_list, list_views
from epsilons.noise.entropy import system

#: How many pairs are tried with draws for each level, and with which part of the draws; of how many the next answer.
MOST_PAIRS, _TRIED, _FOLLOWED = 24, 8, 4
#: Outcomes of a pair, so many of each.
Way = Callable[[Claim, Pair, int], tuple[list[Any], list[Any]]]


def by_draws(claim: Claim, level: float, draws: int, confidence: float, most: int) -> Finding:
    """For somebody of a level, on the pair that looked worst with a few draws."""
    charged, allowed = claim.charged[claim.at(level)[0]], None if claim.delta is None else float(claim.delta)
    pairs = list(claim.pairs(level, most))
    if not pairs:
        return Finding(claim.name, level, charged, 0.0, True, "no neighbours", delta=allowed)
    few = max(50, draws // _TRIED)
    tried = spread_over(pairs, most)
    looked = [found for pair in tried for found in _look(claim, pair, few, _draw)]
    if claim.call is not None:
        looked += [found for pair in tried[:_FOLLOWED] for found in _look(claim, pair, few, _draw_next)]
    _, worst, view, way = max(looked, key=lambda found: found[0])
    one, other = way(claim, worst, draws)
    first, second = view.see(one), view.see(other)
    bound = bound_loss(
        lambda _: first, lambda _: second, draws=draws, confidence=confidence, delta=float(claim.delta or 0)
    )
    how = f"{draws:,} draws of each of two, {len(tried)} pairs tried first"
    event = bound.event.replace("by draw_one", "on the first").replace("by draw_other", "on the second")
    later = " in the answer to other data that comes next" if way is _draw_next else ""
    told = (worst.data, worst.neighbour, view.tell(event) + later, confidence)
    return Finding(claim.name, level, charged, bound.lower, not bound.refutes(charged), how, *told, delta=allowed)


def spread_over(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """So many of them: one of each data set, each of another person or with another value; then another of each."""
    groups: dict[Any, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.data, []).append(pair)
    turns = [group[place % len(group) :] + group[: place % len(group)] for place, group in enumerate(groups.values())]
    return [pair for turn in zip_longest(*turns) for pair in turn if pair is not None][:most]


def _look(claim: Claim, pair: Pair, few: int, way: Way) -> list[tuple[float, Pair, View, Way]]:
    """How much each view of a pair promises."""
    one, other = way(claim, pair, few)
    allowed = float(claim.delta or 0)
    return [(promise_loss(view.see(one), view.see(other), allowed), pair, view, way) for view in list_views(one, other)]


def _draw(claim: Claim, pair: Pair, size: int) -> tuple[list[Any], list[Any]]:
    if claim.call is not None:
        return _in_turns(claim.call, pair, size)
    assert claim.draw is not None
    return as_list(claim.draw(pair.data, size)), as_list(claim.draw(pair.neighbour, size))


def _draw_next(claim: Claim, pair: Pair, size: int) -> tuple[list[Any], list[Any]]:
    """The answers to data that are always the same, each after one to the pair's."""
    call, others = claim.call, (claim.domain[0],) * len(pair.data)
    assert call is not None

    def ask_twice(data: Data) -> Any:
        call(data)
        return call(others)

    return _in_turns(ask_twice, pair, size)


def _in_turns(call: Callable[[Data], Any], pair: Pair, size: int) -> tuple[list[Any], list[Any]]:
    """So many answers to each, in an order by lot."""
    sides: tuple[list[Any], list[Any]] = ([], [])
    for place in np.argsort(system().words(2 * size)).tolist():
        second = place >= size
        sides[second].append(call(pair.neighbour if second else pair.data))
    return sides
