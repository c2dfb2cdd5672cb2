"""One claim under attack, by what is known of it: exact losses where there are laws or sums, else draws."""

from __future__ import annotations

from epsilons.auditing.by_draws import MOST_PAIRS, by_draws
from epsilons.auditing.claims import Claim
from epsilons.auditing.exactly import by_law, by_sums, can_be_summed
from epsilons.auditing.report import Finding
from epsilons.errors import PlanError


def audit_claim(
    claim: Claim, draws: int, confidence: float, pairs: int = MOST_PAIRS, levels: int | None = None
) -> list[Finding]:
    """What was found for each level, exactly where that can be; where draws are dear, on few pairs for few levels."""
    exact = _exactly(claim)
    if exact and not (claim.looked_at_too and all(finding.holds for finding in exact)):
        return exact
    looked_at = claim.levels[:levels]
    each = 1 - (1 - confidence) / max(1, len(looked_at))
    return exact + [by_draws(claim, level, draws, each, pairs) for level in looked_at]


def _exactly(claim: Claim) -> list[Finding]:
    """Nothing where only draws can tell."""
    if can_be_summed(claim):
        return by_sums(claim)
    if claim.law is None:
        return []
    try:
        return [finding for level in claim.levels for finding in by_law(claim, claim.law, level)]
    except PlanError:  # too many outcomes to list
        if claim.draw is None:
            raise
        return []
