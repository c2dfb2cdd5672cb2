"""What the library does, on real wages and made-up preferences: `python -m epsilons.demo`.

people.py        who is asked, and how private each of them asked to be
questions.py     what is asked, and every mechanism's answer
budgets.py       what is left in the ledger after the questions
terminal.py      the answers as tables
document.py      the same as one JSON document
charts.py        the pictures; svg.py makes them part of a page
report.py        one self-contained page; words.py holds its texts
command.py       the command itself
"""
