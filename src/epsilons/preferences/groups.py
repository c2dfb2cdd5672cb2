"""Epsilons of groups of 1, 2, ... people, for group privacy."""

from typing import Any

from epsilons.errors import Argument, EpsilonsError, PlanError, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.preferences.roster import roster_of

GROUPS = Argument("group_epsilons", [1.0, 0.5])


def read_groups(options: Any) -> tuple[int, ...]:
    """The nano-epsilons of groups by their size; none where another privacy is asked for."""
    given = options.group_epsilons
    if options.privacy != "group":
        if given is not None:
            alone = (Argument("group_epsilons"), " go with group privacy.")
            raise PlanError(alone, suggest=Argument("privacy", "group"))
        return ()
    if given is None:
        what = ("Group privacy takes ", Argument("group_epsilons"), ".")
        raise PlanError(what, rule="The i-th one holds for groups of i people.", suggest=GROUPS)
    return _read_sizes(given)


def take_groups(epsilons: Any, given: Any) -> tuple[tuple[int, ...], float]:
    """(the nano-epsilons of groups by their size, what everyone grants by that), in place of people's own epsilons."""
    if epsilons is not None or given is None:
        what = ("Group privacy takes ", Argument("group_epsilons"), " instead of ", Argument("epsilons"), ".")
        raise PlanError(what, rule="The i-th one holds for groups of i people.", suggest=GROUPS)
    groups = _read_sizes(given)
    return groups, to_epsilon(groups[0])


def _read_sizes(given: Any) -> tuple[int, ...]:
    try:
        grants = roster_of(given)
    except EpsilonsError:  # whose words are about people
        grants = None
    if grants is None or len(grants) == 0 or None in grants.levels.grants:
        rule = "Each is larger than 0, and the i-th one holds for groups of i people."
        raise PreferenceError("Group epsilons are finite numbers, at least one.", rule=rule, suggest=GROUPS)
    return tuple(grants.levels.grants[code] or 0 for code in grants.codes)
