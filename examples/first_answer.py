"""Arrays: a plan, an answer, its interval, what it cost. Run: python examples/first_answer.py"""

import numpy as np

import epsilons as eps

draw = np.random.default_rng(1)  # made-up people
ages = draw.integers(18, 90, 2000)
chosen = draw.choice(["strict", "standard", "open"], 2000, p=[0.2, 0.6, 0.2])
privacy = eps.Preferences.from_levels(chosen, {"strict": 0.05, "standard": 0.3, "open": 1})

plan = eps.plan("mean", privacy, bounds=(18, 90), spread=20, complete=True)
print(plan)
answer = plan.ask(ages)
print(answer)
print("95% interval:", answer.interval(0.95))
print("charged, by what was granted:", answer.charges)
