"""The papers' evaluations, run again: one file per paper, runnable as a module, with its figures and its claims."""
