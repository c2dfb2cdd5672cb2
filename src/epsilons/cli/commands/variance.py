"""`epsilons variance`."""

from epsilons.cli.asking import column_question

command = column_question(
    "variance",
    "The variance of a column, its values clipped to public bounds.",
    "epsilons variance people.toml wage --bounds 0,100 --share 0.05",
)
