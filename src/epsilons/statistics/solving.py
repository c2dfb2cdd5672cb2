"""A model from a noisy loss: repaired and solved by post-processing alone.

The loss w'Mw - 2w'v is known up to noise. A noisy M need not be positive definite, and where its eigenvalues are no
larger than the noise they say nothing: dividing by them would blow the model up. So M gets a ridge, direction by
direction, that follows from public facts: how large the noise is, and how large weights are expected to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The public guess of a weight's mean square, for features and targets on [-1, 1].
WEIGHT_SQUARE = 0.05
#: Directions in which people differ by less than the grid can tell (mean square on [-1, 1]) count as no direction.
_GRAIN = 2.0**-30


@dataclass(frozen=True, eq=False)
class NoisyLoss:
    """w'Mw - 2w'v, with M = sum of weighted x x' and v = sum of weighted t x over `people`'s worth of weight.

    `matrix_scale` is the Laplace scale on the diagonal of M (half of it off the diagonal), `vector_scale` that in v.
    """

    matrix: Floats
    vector: Floats
    matrix_scale: float
    vector_scale: float
    people: float

    def minimise(self) -> Floats:
        """The weights of least expected loss, always finite.

        In the basis of M's eigenvectors, v_i = m_i w_i + noise of variance s^2. With w_i of mean square g^2 the best
        linear estimate is v_i m_i/(m_i^2 + s^2/g^2): a ridge of s^2/(g^2 m_i) on m_i. Eigenvalues that noise made
        negative are those of directions that hardly vary; they are taken as 0, and so is the weight.
        """
        # In units of people or of what is there, whichever is larger, so that nothing overflows when squared.
        unit = max(self.people, self.matrix_scale, float(np.abs(self.matrix).max()), 1e-300)
        vector_scale, matrix_scale = self.vector_scale / unit, self.matrix_scale / unit
        # s^2: the noise in v, and in M times weights of the expected size.
        noise = 2 * vector_scale**2 + len(self.vector) * WEIGHT_SQUARE * 2 * (matrix_scale / 2) ** 2
        values, basis = np.linalg.eigh(self.matrix / unit)
        positive = np.maximum(values, 0.0)
        ridge = noise / WEIGHT_SQUARE
        shares = np.where(positive > _GRAIN, positive, 0.0) / np.maximum(positive**2 + ridge, _GRAIN**2)
        weights: Floats = basis @ (shares * (basis.T @ (self.vector / unit)))
        return weights
