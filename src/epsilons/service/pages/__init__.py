"""Pages on a gateway, for people with a browser: choose a level, ask, see that all is well. Written on the server.

layout.py     what every page shares: templates, headers, assets, refusals
entrance.py   the way in by a link or a key, and out
person.py     one's own account and choice
analyst.py    datasets, questions with their plans, answers;  asking.py: forms as questions, and questions as code
steward.py    datasets, keys, quotas;  health.py: what a steward is shown of a dataset
charts.py     pictures by the library's own plots, each with its table
ways.py       the ways to them, and who may take which
"""
