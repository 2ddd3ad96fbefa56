"""Rows fewer than their features, in a basis of their own: the same geometry with fewer numbers.

Rows X (row, feature) are A Q, with coordinates A (row, direction) and orthonormal directions Q
(direction, feature). Sums of rows have coordinates, too, and all that is asked of rows and sums is
how long they are and how they lie to each other, features divided by their scale D and whitened
by C, C C' = share Sigma + (1 - share) I (`within.py`). In coordinates that is the metric
M = Q D^-1 (C C')^-1 D^-1 Q'. Sigma is D^-1 Q' W Q D^-1 up to a factor, W being how coordinates vary
within classes, so that by Woodbury's identity, with H = Q D^-2 Q',

    M^-1 = (1 - share) H^-1 + share W .

So a root L of it, L L' = M^-1, does to coordinates what D C does to features: L^-1 a is as long as
C^-1 D^-1 x. For 75 images of 512 features all of this is 75 x 75.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float, Float32, Float64

from transduce.mixtures.within import (
    EMPTY,
    LEAST_VARIATION,
    LEAST_WHITENING,
    PerClass,
    Scaling,
    shrunk_deviations,
)

Matrix = Float64[np.ndarray, "direction direction"]
PerFeature = Float32[np.ndarray, " feature"]


@dataclass(frozen=True)
class Basis:
    """Orthonormal directions of the features that some rows are combinations of."""

    directions: Float64[np.ndarray, "direction feature"]

    @classmethod
    def of(cls, rows: Float32[np.ndarray, "row feature"]) -> "Basis":
        """A basis of rows that are fewer than their features; copies of each other, or not."""
        orthonormal, _ = scipy.linalg.qr(
            rows.T.astype(np.float64), mode="economic", overwrite_a=True, check_finite=False
        )
        return cls(np.ascontiguousarray(orthonormal.T))

    def coordinates(
        self, rows: Float32[np.ndarray, "row feature"]
    ) -> Float32[np.ndarray, "row direction"]:
        """How far rows go in each direction."""
        return rows @ self.directions.T.astype(np.float32)

    def rows(
        self, coordinates: Float[np.ndarray, "row direction"]
    ) -> Float64[np.ndarray, "row feature"]:
        """The rows of these coordinates."""
        return coordinates @ self.directions

    def scaling_within(
        self,
        products: Matrix,
        sums: Float64[np.ndarray, "class direction"],
        mass: PerClass,
        n_images: float,
        *,
        pseudo_images: float,
        share: float,
    ) -> Scaling:
        """The scaling of a batch whose products and sums are in coordinates.

        As `within.scaling_within`; `scale` is of the features, `root` and `transform` of the
        coordinates.
        """
        used = np.flatnonzero(mass > EMPTY)
        roots = (sums[used] / np.sqrt(mass[used])[:, np.newaxis]).astype(np.float32)
        within = products - roots.T @ roots
        squares = np.einsum("ij,ij->j", self.directions, within @ self.directions)
        scale = shrunk_deviations(squares, n_images, pseudo_images)
        metric = self.metric(scale)
        trace, whole = float((within * metric).sum()), float((products * metric).sum())
        if share <= LEAST_WHITENING or trace <= LEAST_VARIATION * whole:
            share = 0.0
        inverse = (1.0 - share) * np.linalg.inv(metric)
        if share:
            inverse += share * len(scale) / trace * within
        root = np.linalg.cholesky(inverse).astype(np.float32)
        return Scaling.of_coordinates(scale, root, share)

    def metric(self, scale: PerFeature) -> Matrix:
        """Q D^-2 Q': products of coordinates, features divided by their scale."""
        scaled = self.directions / scale
        return scaled @ scaled.T

    def in_features(self, scaling: Scaling) -> Scaling:
        """A scaling of coordinates as one of features."""
        if not scaling.share:
            return Scaling.of(scaling.scale, None, 0.0)
        assert scaling.root is not None
        root, kept = scaling.root.astype(np.float64), 1.0 - scaling.share
        within = root @ root.T - kept * np.linalg.inv(self.metric(scaling.scale))
        scaled = self.directions / scaling.scale
        covariance = scaled.T @ (within @ scaled)
        covariance[np.diag_indices(len(covariance))] += kept
        root = np.linalg.cholesky(covariance.astype(np.float32))
        return Scaling.of(scaling.scale, root, scaling.share)
