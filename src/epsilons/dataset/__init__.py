"""Tables about people: `Dataset`.

table.py         `Dataset` itself;  methods.py: the statistics as its methods;  declared.py: a dataset as a file
asking.py        SQL, relations, keys: also of what is behind a server;  documents.py: questions as JSON
registered.py    how a dataset comes to be;  registering.py: from a source to the ledger;  preview.py: what that does
preferences.py   who asked for what, read from tables;  gathering.py: what rows say of people, by person
registry.py      a dataset's people, by its ledger;  accounts.py: what is done and told there, as plain values
rows.py          the rows, read once, capped, labelled;  snapshot.py: the copy that is kept, and known again
question.py      from a call to a question;  attempt.py: the question's way through the door
people.py        the summaries of rows that mechanisms see;  levels.py: questions about preferences
batch.py         several questions at one share;  sql.py: questions in SQL;  answers.py: what both give
applying.py      any private algorithm on a sample of people;  facts.py: what is publicly known of a dataset
audited.py       audits of the whole way through a table and a ledger
"""

from importlib.util import find_spec

from epsilons.errors import DataError

if _missing := [part for part in ("pyarrow", "duckdb", "sqlglot") if find_spec(part) is None]:
    raise DataError(
        f"Tables need {' and '.join(_missing)}, which arrays do without.", suggest="pip install 'epsilons[tables]'"
    )

from epsilons.dataset.table import Dataset

__all__ = ["Dataset"]
