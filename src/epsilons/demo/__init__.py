"""What the library does, on real wages and made-up preferences: `python -m epsilons.demo`.

__main__.py      the command, and its JSON document
people.py        who is asked, and how private each of them asked to be
questions.py     what is asked, every mechanism's answer, what is left in the ledger
terminal.py      the answers as tables, and the texts that the report shares
report.py        one self-contained page; charts.py draws its pictures
made_up.py       `epsilons demo`: one question on arrays of made-up people, with the package alone
collecting.py    `epsilons collect demo`: aggregators, made-up owners, one kill -9
"""
