"""What every test shares: the markers are declared in pyproject.toml, the random inputs are set here."""

import os

from hypothesis import settings

# Figures are drawn to files; a machine without a screen must not matter.
os.environ.setdefault("MPLBACKEND", "Agg")

# The quick run tries the same inputs every time, so a failure seen elsewhere can be seen here.
# No deadline: two busy cores are slow now and then, and that is no fault of the code.
settings.register_profile("quick", deadline=None, derandomize=True)
# The long run looks for new inputs, and prints the blob that repeats a failure.
settings.register_profile("soak", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile("quick")
