"""Each paper's evaluation, run again: its settings, its figures, and whether its claims hold."""
