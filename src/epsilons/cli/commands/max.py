"""`epsilons max`."""

from epsilons.cli.asking import column_question

command = column_question(
    "max",
    "The largest value of a column, on a public grid of answers.",
    "epsilons max people.toml wage --bounds 0,100 --share 0.05",
    grid=True,
)
