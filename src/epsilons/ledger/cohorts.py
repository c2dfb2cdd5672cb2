"""Who may still be charged how much: arithmetic on cohorts, exact and free of any database."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from epsilons.ledger.base import ACTIVE, Allowance, Cohort, exhausted

#: Less than this part of what was asked for counts as nothing left: crumbs would cost accuracy and gain nothing.
CRUMB = Fraction(1, 100)


def present(cohorts: Iterable[Cohort]) -> tuple[Cohort, ...]:
    """The cohorts that somebody stands in and has not withdrawn from."""
    return tuple(cohort for cohort in cohorts if cohort.people and cohort.state == ACTIVE)


def allowance(cohorts: Iterable[Cohort], share: Fraction, epoch: int, part: Fraction = Fraction(1)) -> Allowance:
    """At most a share of the grant, and at most this part of what is left; who has (nearly) nothing is left out."""
    here = present(cohorts)
    public = tuple(cohort.id for cohort in here if cohort.granted is None)
    nano: dict[int, int] = {}
    for cohort in here:
        if cohort.granted is None or cohort.left is None:
            continue
        asked = cohort.granted * share
        most = min(math.floor(asked), math.floor(cohort.left * part))
        if most > 0 and most >= CRUMB * asked:
            nano[cohort.id] = most
    if not nano and len(public) < max(1, len(here)):
        raise exhausted()
    return Allowance(epoch=epoch, share=share, nano=nano, public=public)


def least_left(cohorts: Iterable[Cohort]) -> dict[int, int]:
    """{grant: the least that anyone with this grant has left}, strictest grant first."""
    least: dict[int, int] = {}
    for cohort in present(cohorts):
        if cohort.granted is not None and cohort.left is not None:
            least[cohort.granted] = min(least.get(cohort.granted, cohort.left), cohort.left)
    return dict(sorted(least.items()))


def questions_left(least: Mapping[int, int], last: Mapping[int, int]) -> dict[int, int]:
    """How often everyone at a level could still pay what the last question charged there ({grant: charge})."""
    return {granted: least[granted] // charge for granted, charge in sorted(last.items()) if granted in least}
