"""Plan before spending: what every mechanism would cost and how far it would err, from public facts alone.

choose.py    which mechanism, and why: a row for each
plan.py      the plan, which can be asked
guesses.py   what it takes for granted of the values
"""
