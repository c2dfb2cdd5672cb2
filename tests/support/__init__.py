"""What tests share; nothing here is a test.

| for | files |
|---|---|
| the definitions, slow and obvious | `brute_force`, `rows`, `replacing`, `listing`, `local_truth` |
| inputs | `small_worlds` (every loss can be computed), `small_tables`, `tables`, `many_rows`, `wages`, `hostile` |
| tables as files of text, sheets and tables of a server | `forms`, `workbooks`, `changing` |
| settings of the papers | `settings` |
| bugs on purpose, and frozen noise | `planted`, `frozen` |
| the figures that `make soak` writes to docs/reliability.md | `figures` |
| the short and the long form of a test | `lengths` |
| ledgers | `ledgers`, `ledger_model`, `ledger_recount`, `ledger_copies`, `ledger_clients`, `ledger_servers` |
| one question on arrays, DuckDB and Spark | `fronts` |
| Spark | `spark_session`, `spark_questions`, `spark_losses` |
| collections | `collections_world`, `aggregator_processes` |
| processes that are killed at a named place | `faults` |
| that nobody's own heads are touched | `own_state` |
| services: certificates, requests from their OpenAPI documents | `certificates`, `described` |
"""

import os

# The workers of a run share the cores. The threads of linear algebra that wait for each other burn more time than they
# save; this is read when numpy is first loaded, which is after this file.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
