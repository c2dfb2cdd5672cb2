"""What can be asked: a file for each statistic or family, one catalogue; `base.py` says what a question is made of."""
