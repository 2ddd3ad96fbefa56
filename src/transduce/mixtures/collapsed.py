"""Gaussian classes with their means integrated out, each image left out of its own class.

With assignments z (image, class), n_k = sum_i z_ik and S_k = sum_i z_ik y_i, image i sees class k
as the other images made it: n_k - z_ik images with the sum S_k - z_ik y_i. The mean of class k has
the prior N(m_k, v_k), worth tau_k = V_w / v_k images at m_k, so that the predictive density of y_i
is a Gaussian with mean (S_k - z_ik y_i + tau_k m_k) / (n_k - z_ik + tau_k) and variance
V_w (1 + 1 / (n_k - z_ik + tau_k)). All that is needed of the batch are sums over its images.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float32, Float64, Int

from transduce.mixtures.foretold import means_from_names
from transduce.mixtures.within import row_squares


@dataclass(frozen=True)
class CollapsedGaussians:
    """The classes of a batch, as each of its images sees them without itself.

    `sums` and `mass` include `pseudo_images` tau_k at the prior means m_k; `mass` is n_k alone.
    """

    sums: Float32[np.ndarray, "class feature"]
    mass: Float32[np.ndarray, " class"]
    pseudo_images: Float32[np.ndarray, " class"]
    within: float
    total: float

    @classmethod
    def of(
        cls,
        sums: Float32[np.ndarray, "class feature"],
        mass: Float64[np.ndarray, " class"],
        *,
        within: float,
        total: float,
        names: Float32[np.ndarray, "class embedding"] | None,
    ) -> "CollapsedGaussians":
        """The classes with these sums and sizes; without `names` all prior means are 0."""
        spread = total - within
        pseudo_images = np.full(len(mass), within / spread, np.float32)
        if names is not None:
            means, variances = means_from_names(sums, mass, within, spread, names)
            pseudo_images = (within / variances).astype(np.float32)
            means *= pseudo_images[:, np.newaxis]
            sums = sums + means
        return cls(
            sums=sums,
            mass=mass.astype(np.float32),
            pseudo_images=pseudo_images,
            within=within,
            total=total,
        )

    def affine(
        self,
    ) -> tuple[
        Float32[np.ndarray, " class"], Float32[np.ndarray, " class"], Float32[np.ndarray, " class"]
    ]:
        """Factors of y . S_k and |y|^2 in the log density of images outside the batch; the rest."""
        a = 1.0 / (self.mass.astype(np.float64) + self.pseudo_images)
        variance = self.within * (1.0 + a)
        rest = -0.5 * (np.log(variance / self.total) + a * a * self._squares / variance)
        factors = a / variance, -0.5 / variance, rest
        slope, per_length, constant = (factor.astype(np.float32) for factor in factors)
        return slope, per_length, constant

    def left_out(
        self,
        classes: Int[np.ndarray, " entry"],
        z: Float32[np.ndarray, " entry"],
        dots: Float32[np.ndarray, " entry"],
        lengths: Float32[np.ndarray, " entry"],
    ) -> Float32[np.ndarray, " entry"]:
        """How much the log density of images changes as shares `z` of them leave `classes`.

        `dots` are y . S_k, `lengths` |y|^2 of the images.
        """
        taken = z.astype(np.float64)
        mass, tau = self.mass.astype(np.float64)[classes], self.pseudo_images[classes]
        squares, dots = self._squares[classes], dots.astype(np.float64)
        with_them = self._density(1.0 / (mass + tau), 0.0, dots, lengths, squares)
        a = 1.0 / (np.maximum(mass - taken, 0.0) + tau)
        return (self._density(a, taken, dots, lengths, squares) - with_them).astype(np.float32)

    def log_density(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row class"]:
        """Log predictive density of images outside the batch, per effective dimension.

        It is relative to the density of the whole batch.
        """
        slope, per_length, constant = self.affine()
        density = rows @ self.sums.T
        density *= slope
        density += np.einsum("ij,ij->i", rows, rows)[:, np.newaxis] * per_length
        density += constant
        return density

    @cached_property
    def _squares(self) -> Float64[np.ndarray, " class"]:
        return row_squares(self.sums).astype(np.float64)

    def _density(
        self,
        a: Float64[np.ndarray, " entry"],
        z: Float64[np.ndarray, " entry"] | float,
        dots: Float64[np.ndarray, " entry"],
        lengths: Float32[np.ndarray, " entry"],
        squares: Float64[np.ndarray, " entry"],
    ) -> Float64[np.ndarray, " entry"]:
        # With a = 1 / (n - z + tau) and g = 1 + a z, the squared distance to the class mean is
        # |y|^2 g^2 - 2 a g y.S + a^2 |S|^2.
        g = 1.0 + a * z
        variance = self.within * (1.0 + a)
        distance = g * g * lengths - 2.0 * a * g * dots + a * a * squares
        return -0.5 * (np.log(variance / self.total) + distance / variance)
