"""From a noisy quadratic loss to a model: slopes shrink towards no effect, the intercept stays. All post-processing.

The loss is w'Mw - 2w'v with M = sum x x' and v = sum t x, x = (1, features) and t in [-1, 1]. Around the means it is a
loss of the slopes alone, b'Qb - 2b'u, with the covariances Q of features and u of features and target. Both are noisy
by a public amount: in the basis of Q's eigenvectors u_i = q_i b_i + noise of variance s^2. Two things shrink slopes:

- with slopes of a mean square of g^2, a public guess, the best linear estimate is b_i = u_i q_i/(q_i^2 + s^2/g^2): a
  ridge of s^2/(g^2 q_i), hardly any where people differ much, and all of it where they do not;
- what noise may well make of a direction is no effect: each b_i is multiplied by 1 - 1.5 s^2/u_i^2, or by 0, as James
  and Stein (1961) shrink, somewhat more. So where nothing shows above the noise the model is a constant.

As the noise vanishes, so do both. How much less than a constant the model errs follows by Stein's (1981) identity: on
the sums that it was fitted to it looks better than it is by 2 s^2 times the sum of the derivatives of b_i by u_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: g^2: the public guess of a slope's mean square, for features and targets on [-1, 1].
WEIGHT_SQUARE = 0.05
#: The part of it that errors take slopes to have where noise hides them: they may be of the usual size, or nothing.
HIDDEN = 1 / 2
#: The mean square of an intercept of which nothing is known, on [-1, 1]. It tells only where noise is as large.
INTERCEPT_SQUARE = 1 / 3
#: How much of the noise's mean square is taken off what a direction shows: 1 would be James and Stein's, and is worse
#: than a constant more often.
_DOUBT = 1.5
#: Directions in which people differ by less than the grid can tell (mean square on [-1, 1]) count as no direction.
_GRAIN = 2.0**-30


@dataclass(frozen=True, eq=False)
class NoisyLoss:
    """Noisy sums over `people`'s worth of weight; `squares` is that of t^2 - 1, 0 where t is -1 or 1.

    `matrix_scale` is the Laplace scale on the diagonal of M and in `squares` (half of it off the diagonal),
    `vector_scale` that in v. With `counted` the sum of ones, M_00, is public and exact. Slopes are expected
    to have `slope_part` of the usual mean square.
    """

    matrix: Floats
    vector: Floats
    matrix_scale: float
    vector_scale: float
    people: float
    squares: float = 0.0
    counted: bool = False
    slope_part: float = 1.0

    @property
    def slope_square(self) -> float:
        """g^2."""
        return self.slope_part * WEIGHT_SQUARE

    @cached_property
    def rows(self) -> float:
        """How many there are: no more than people, no fewer than the noise would let anyone see."""
        if self.counted:
            return max(self.people, 1e-300)
        return max(min(float(self.matrix[0, 0]), self.people), self.matrix_scale, 1e-300)

    @cached_property
    def scales(self) -> tuple[float, float]:
        """The scales in M and v, for each row."""
        return self.matrix_scale / self.rows, self.vector_scale / self.rows

    @cached_property
    def means(self) -> tuple[Floats, float]:
        """(of features, of the target)."""
        features = np.clip(self.matrix[0, 1:] / self.rows, -1.0, 1.0)
        return features, min(max(float(self.vector[0]) / self.rows, -1.0), 1.0)

    @cached_property
    def mean_noise(self) -> float:
        """The variance of the noise in the target's mean, by its sum and by the number of rows."""
        matrix, vector = self.scales
        return 2 * vector**2 + (0.0 if self.counted else 2 * (matrix * self.means[1]) ** 2)

    @cached_property
    def noise(self) -> float:
        """s^2: in the sums of t x_j, in the means that are taken away, and in Q times slopes of the expected size."""
        (matrix, vector), (features, target) = self.scales, self.means
        by_matrix = target**2 + len(features) * self.slope_square
        return 2 * vector**2 * (1 + float(np.mean(features**2))) + 2 * (matrix / 2) ** 2 * by_matrix

    @cached_property
    def directions(self) -> tuple[Floats, Floats, Floats]:
        """(q, u, basis): people's spread in each direction, 0 where noise made it negative, and the covariances."""
        features, target = self.means
        # Nobody's features have a mean square above 1; entries that noise made huge must not overflow.
        squares = np.clip(self.matrix[1:, 1:] / self.rows, -1e6, 1e6)
        values, basis = np.linalg.eigh(squares - np.outer(features, features))
        u = basis.T @ (np.clip(self.vector[1:] / self.rows, -1e6, 1e6) - features * target)
        return np.where(values > _GRAIN, values, 0.0), u, basis

    @cached_property
    def shares(self) -> Floats:
        """a_i."""
        q, _, _ = self.directions
        return q / np.maximum(q**2 + self.noise / self.slope_square, _GRAIN**2)

    @cached_property
    def explained(self) -> Floats:
        """The part of each u_i that noise may well explain; 1 for all of it."""
        return np.minimum(_DOUBT * self.noise / np.maximum(self.directions[1] ** 2, 1e-300), 1.0)

    @cached_property
    def slopes(self) -> Floats:
        """In the basis of the directions."""
        return (1 - self.explained) * self.shares * self.directions[1]

    def minimise(self) -> Floats:
        """(intercept, slopes), always finite."""
        features, target = self.means
        slopes = self.directions[2] @ self.slopes
        mean = target * INTERCEPT_SQUARE / (INTERCEPT_SQUARE + self.mean_noise)
        return np.concatenate([[mean - float(features @ slopes)], slopes])

    @property
    def somebody(self) -> bool:
        """Whether anybody counts for certain: their noisy number is three standard deviations of its noise or more."""
        return self.counted or float(self.matrix[0, 0]) >= 3 * math.sqrt(2) * self.matrix_scale

    @property
    def error(self) -> float:
        """The mean square between this model's predictions and those without noise."""
        return sum(self.errors)

    @cached_property
    def errors(self) -> tuple[float, float]:
        """(of the constant, of the slopes) in that mean square.

        By the law of each slope b_i given u_i, if slopes have a mean square that is usual of hidden ones or as was
        found, but no larger than all u_i show together beyond their noise, and one standard error of that. The noise in
        Q and in the features' means is multiplied by the slopes; on its diagonal Q has twice the noise, so each
        direction has 3/d of a slope's more.
        """
        q, u, _ = self.directions
        (matrix, vector), (features, target), d = self.scales, self.means, len(q)
        found, beside = float(self.slopes @ self.slopes), 2 * (matrix / 2) ** 2

        def noise_with(slopes: float) -> float:
            by_vector = 2 * vector**2 * (1 + float(np.mean(features**2)))
            return by_vector + beside * (target**2 + slopes * (1 + 3 / d))

        # By luck alone slopes differ from nothing, the more the fewer people there are.
        luck = self.variance[0] / (self.rows * max(float(q.mean()), _GRAIN))
        usual = HIDDEN * self.slope_square + min(luck, self.slope_square)
        most = noise_with(max(found, d * self.slope_square))
        shown = max(float(u @ u) - d * most, 0.0) + math.sqrt(2 * d) * most
        square = min(shown / max(float(q @ q), _GRAIN**2), max(found / d, usual))
        slopes = max(found, d * square)
        noise = noise_with(slopes)
        share = q / np.maximum(q**2 + noise / max(square, 1e-300), _GRAIN**2)
        lost = q * (self.slopes - share * u) ** 2 + noise * share
        return min(self.mean_noise + beside * found, INTERCEPT_SQUARE), float(lost.sum())

    @property
    def covariance(self) -> tuple[float, float]:
        """(of predictions and targets, its standard error): what the slopes share with the noise is taken off."""
        derivatives = np.where(self.explained < 1, self.shares * (1 + self.explained), 0.0)
        found = float(self.slopes @ self.directions[1]) - self.noise * float(derivatives.sum())
        return found, math.sqrt(self.noise * float(self.slopes @ self.slopes))

    @property
    def spread(self) -> tuple[float, float]:
        """(the mean square of predictions around their mean, its standard error)."""
        square = float(self.slopes @ self.slopes)
        return float(self.directions[0] @ self.slopes**2), math.sqrt(2) * self.scales[0] * square

    @property
    def variance(self) -> tuple[float, float]:
        """(of targets, its standard error)."""
        _, target = self.means
        found = min(max(1 - target**2 + self.squares / self.rows, 0.0), 1 - target**2)
        return found, float(np.sqrt(2 * self.scales[0] ** 2 * bool(self.squares) + 4 * target**2 * self.mean_noise))


def squared_reach(d: int, kappa: int, complete: bool, square: int) -> dict[str, int]:
    """The squared L2 reach of the released cells of a model of d features and intercept, a row adding `square` to each.

    With s_j = x_j^2 and t^2 in [0, 1], s_0 = 1, a row has sum s_j^2 + 4 sum_{j<l} s_j s_l + 4 kappa^2 t^2 sum s_j +
    (1 - t^2)^2, which is convex in each of them, and so largest at its corners: where all are 1. With x_j^2 - 1/2 for
    x_j^2, whose squares are 1/4 at both corners, and x_0^2 left out, the same holds. Twice as long is the difference of
    two rows at most, and no longer than in L1.
    """
    quarters = 4 * (2 * d * d - d + 4 * kappa**2 * d)
    if complete:
        quarters = 17 * (d - 1) + 8 * (d - 1) * (d - 2) + 16 * kappa**2 * d
    absent = -(-quarters * square**2 // 4)
    return {"absent": absent, "replace": min(4 * absent, (d + kappa) ** 4 * square**2)}
