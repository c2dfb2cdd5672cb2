"""Tables in DuckDB or Spark: run a query, hand back columns.

readings.py    what is read of a container, by its type: of arrays, too
base.py        what an engine is, its columns, which engine opens a source
trees.py       what queries are built of
conditions.py  text that a caller wrote, checked and put in normal form
sources.py     files, frames and servers, with types fixed by declaration
dialects.py    how cells of text are written
workbooks.py   sheets of Excel, as lines of text
far_cells.py   cells far from all others; those of .xlsb: far_records.py, of .ods: far_tables.py; how far: far_places.py
calendars.py   parts of dates and times in conditions
postgresql.py  tables of a PostgreSQL server
lines.py       CSV and JSON lines, in which no row spoils another
duckdb.py      DuckDB, embedded
spark.py       Spark
"""
