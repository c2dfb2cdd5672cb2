"""`epsilons median`."""

from epsilons.cli.asking import column_question

command = column_question(
    "median",
    "The median of a column, on a public grid of answers.",
    "epsilons median people.toml wage --bounds 0,100 --share 0.05",
    grid=True,
)
