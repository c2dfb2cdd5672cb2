"""A gateway from outside: what whoever asks needs, and what both sides must write alike.

client.py    `eps.connect`: datasets that are asked over HTTP by the same methods;  plans.py: what they would cost
keys.py      how a key is written;  problems.py: errors over HTTP, both ways;  progress.py: how far a question is
"""
