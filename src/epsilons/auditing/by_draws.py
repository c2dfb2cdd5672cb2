"""A lower bound on a claim's loss from draws, in two rounds.

The first tries many pairs, and several views of each, with few draws; the second draws afresh on the pair that looked
worst for a level, in the view that showed it, so that the choice costs no confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from epsilons.auditing.claims import Claim
from epsilons.auditing.draws import bound_loss, promise_loss
from epsilons.auditing.made_up import Pair
from epsilons.auditing.report import Finding
from epsilons.auditing.views import View, as_list, list_views

#: How many pairs are tried with draws for each level, and with which part of the draws.
MOST_PAIRS, _TRIED = 24, 8


def by_draws(claim: Claim, level: float, draws: int, confidence: float, most: int) -> Finding:
    """For somebody of a level, on the pair that looked worst with a few draws."""
    charged, allowed = claim.charged[claim.at(level)[0]], None if claim.delta is None else float(claim.delta)
    pairs = list(claim.pairs(level, most))
    if not pairs:
        return Finding(claim.name, level, charged, 0.0, True, "no neighbours", delta=allowed)
    few = max(50, draws // _TRIED)
    tried = spread_over(pairs, most)
    looked = [found for pair in tried for found in _look(claim, pair, few)]
    _, worst, view = max(looked, key=lambda found: found[0])
    one, other = (as_list(_draw(claim, data, draws)) for data in (worst.data, worst.neighbour))
    first, second = view.see(one), view.see(other)
    bound = bound_loss(
        lambda _: first, lambda _: second, draws=draws, confidence=confidence, delta=float(claim.delta or 0)
    )
    how = f"{draws:,} draws of each of two, {len(tried)} pairs tried first"
    event = bound.event.replace("by draw_one", "on the first").replace("by draw_other", "on the second")
    told = (worst.data, worst.neighbour, view.tell(event), confidence)
    return Finding(claim.name, level, charged, bound.lower, not bound.refutes(charged), how, *told, delta=allowed)


def spread_over(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """So many of them: one of each data set, each of another person or with another value; then another of each."""
    groups: dict[Any, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.data, []).append(pair)
    turns = [group[place % len(group) :] + group[: place % len(group)] for place, group in enumerate(groups.values())]
    return [pair for turn in zip_longest(*turns) for pair in turn if pair is not None][:most]


def _look(claim: Claim, pair: Pair, few: int) -> list[tuple[float, Pair, View]]:
    """How much each view of a pair promises."""
    one, other = (as_list(_draw(claim, data, few)) for data in (pair.data, pair.neighbour))
    allowed = float(claim.delta or 0)
    return [(promise_loss(view.see(one), view.see(other), allowed), pair, view) for view in list_views(one, other)]


def _draw(claim: Claim, data: tuple[Any, ...], size: int) -> Any:
    assert claim.draw is not None
    return claim.draw(data, size)
