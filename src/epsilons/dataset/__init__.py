"""Tables about people: `Dataset`.

table.py         `Dataset` itself;  methods.py: the statistics as its methods;  declared.py: a dataset as a file
preferences.py   who asked for what, read from tables;  registry.py: from there to the ledger, and back to the rows
question.py      from a call to a question;  attempt.py: the question's way through the door
people.py        the rows, copied to be quick to ask, and the summaries of them that mechanisms see
batch.py         several questions at one share;  sql.py: questions in SQL;  answers.py: what both give
applying.py      any private algorithm on a sample of people;  facts.py: what is publicly known of a dataset
"""

from epsilons.dataset.table import Dataset

__all__ = ["Dataset"]
