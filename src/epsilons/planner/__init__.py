"""Plan before spending: what every mechanism would cost and how far it would err, from public facts alone."""

from epsilons.planner.choose import choose, rank_mechanisms
from epsilons.planner.plan import Plan
from epsilons.planner.rows import PlanRow

__all__ = ["Plan", "PlanRow", "choose", "rank_mechanisms"]
