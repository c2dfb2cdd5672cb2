"""`epsilons mean`."""

from epsilons.cli.asking import column_question

command = column_question(
    "mean",
    "The mean of a column, its values clipped to public bounds.",
    "epsilons mean people.toml wage --bounds 0,100 --by region=north,south --share 0.05",
)
