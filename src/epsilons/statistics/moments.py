"""What is publicly expected of a person's contribution."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Moments:
    """What is publicly expected of one person's contribution, on the scale of the answer's sum.

    `location` is how far off the expected mean may well be where neither mean nor density were guessed. It counts only
    as bias, against mechanisms that leave something out: else shrinking to the centre would look free. `off` is for a
    variance, or a mean of rows: how far the values' own mean is expected to lie from the centre of the bounds. `most`
    bounds the variance once an answer was seen, for intervals. `rows` is how many rows of a person count, where their
    number is private. `slope`: an answer that this was read off was multiplied by it for what its weights leave out;
    `missing` is how much a total that was seen leaves out at most. `seen` says that a variance was read off an answer.
    """

    mean: float
    variance: float
    location: float = 0.0
    off: float = 0.0
    most: float = math.nan
    rows: float = 1.0
    slope: float = 1.0
    missing: float = math.nan
    seen: bool = False
