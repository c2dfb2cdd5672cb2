"""The one argument model: what questions take, and how each argument is checked.

checks.py    numbers, names, truths: one check each, with one text
options.py   the options that all statistics share, as data
reading.py   how a call is read: against what a statistic takes, to `AskOptions`
"""
