"""What can be asked: a file for each statistic or family, one catalogue.

base.py          what every question is made of;  entry.py, catalogue.py: what fronts need to know of each statistic
additive.py      the family of sums, and how it draws: total.py (sum, mean), variance.py, regression.py with features.py
counting.py      those of them that count people or rows: count.py, histogram.py
order.py         the family of medians and quantiles, and how it draws;  outward.py: their answers, the likeliest first
quantiles.py     several quantiles in one question; what fronts need to know of the family
unbounded.py     the k-th largest without bounds;  sensitivity.py: how far a person moves an answer on these data
"""
