"""Choosing levels: what they mean in odds, and what a looser choice does to errors. python examples/levels.py"""

import epsilons as eps
from epsilons.preferences.odds import tell_odds

LEVELS = {"strict": 0.1, "standard": 0.5, "open": 2.0}
PEOPLE = {"strict": 500, "standard": 1200, "open": 300}

for name, epsilon in LEVELS.items():
    print(f"{name}: {tell_odds(epsilon, 'absent')}")

asked = [LEVELS[name] for name, number in PEOPLE.items() for _ in range(number)]
plan = eps.plan("mean", asked, bounds=(0, 100), spread=20)
print(f"as it is: error {plan.best.error:.2f}")
for part in (0.25, 0.5, 0.75):
    moved = plan.what_if({LEVELS["strict"]: (LEVELS["standard"], part)})
    print(f"if {part:.0%} of the strict became standard: error {moved.best.error:.2f}")
