"""The statistics on plain arrays: `eps.count(values, epsilons)`.

`values[i]` belongs to a person whose epsilon is `epsilons[i]`; `eps.PUBLIC` (infinite) means public. Epsilons may
also be one number for everyone, or `eps.Preferences`. Each call is one release at a share of everybody's epsilon,
all of it unless said otherwise.

    functions.py   the functions, made from the catalogue; functions.pyi shows them to type checkers
    asking.py      one question: check, choose a mechanism, draw; and its plan
    personalize.py any private algorithm made personal;  algorithms.py: how it is run;  thresholds.py: at which epsilon
    individual.py  individual privacy for the caller's own function
    noisy.py       Laplace or Gaussian noise for it;  gridded.py: its answers on a public grid
    research.py    distributions, simulations and audits of any mechanism or function
    select.py      one of several options by any score;  claimed.py: how a caller's claim is tested on made-up data
"""
