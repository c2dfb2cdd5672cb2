"""Who asked for what: a person's epsilon, the levels these form, and how many stand at each."""

from epsilons.preferences.asked import Preferences
from epsilons.preferences.ids import read_ids
from epsilons.preferences.ladder import LADDER
from epsilons.preferences.roster import (
    LARGEST_EPSILON,
    MAX_LEVELS,
    PUBLIC,
    Levels,
    Roster,
    aligned_roster,
    count_codes,
    count_some,
    name_grant,
    roster_of,
    to_nano,
)

__all__ = [
    "LADDER", "LARGEST_EPSILON", "MAX_LEVELS", "PUBLIC", "Levels", "Preferences", "Roster", "aligned_roster",
    "count_codes", "count_some", "name_grant", "read_ids", "roster_of", "to_nano",
]  # fmt: skip
