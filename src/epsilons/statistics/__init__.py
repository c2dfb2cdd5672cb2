"""What can be asked: one file per statistic, each with the summary it needs and its sensitivity."""
