"""`epsilons sum`."""

from epsilons.cli.asking import column_question

command = column_question(
    "sum",
    "The sum of a column, its values clipped to public bounds.",
    "epsilons sum people.toml wage --bounds 0,100 --share 0.05",
)
