"""`epsilons min`."""

from epsilons.cli.asking import column_question

command = column_question(
    "min",
    "The smallest value of a column, on a public grid of answers.",
    "epsilons min people.toml wage --bounds 0,100 --share 0.05",
    grid=True,
)
