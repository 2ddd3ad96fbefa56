"""Gaussian components: one fixed precision for all, or a diagonal precision for each class."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from transduce.mixtures.family import EMPTY_MASS, Statistics

SMALLEST_DEVIATION = 1e-15  # keeps the precision of a class with one image finite


@dataclass(frozen=True)
class Spherical:
    """The family N(mu, I / precision): T(x) = x, eta = precision mu; parameters are the centroids.

    Parameters
    ----------
    precision : float, default=1.0
        Inverse variance of every feature, the same for all classes.
    empty : {"keep", "origin"}, default="keep"
        An empty class keeps its centroid, or falls back to the origin (k-means as published).
    """

    precision: float = 1.0
    empty: Literal["keep", "origin"] = "keep"

    def statistic(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        """Return T(x), in float64."""
        return rows.astype(np.float64, copy=False)

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        """Log of h(x) of each row (row,)."""
        return -0.5 * self.precision * np.einsum("nd,nd->n", rows, rows, dtype=np.float64)

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class feature"]:
        """Parameters (class, parameter) before any data."""
        return np.zeros((n_classes, n_features))

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class feature"]
    ) -> Float[np.ndarray, "class feature"]:
        """Fit every class with data; an empty one keeps its parameters or falls back."""
        full = (statistics.mass > EMPTY_MASS)[:, np.newaxis]
        return np.where(full, statistics.mean, previous if self.empty == "keep" else 0.0)

    def natural(
        self, parameters: Float[np.ndarray, "class feature"]
    ) -> tuple[Float[np.ndarray, "class feature"], Float[np.ndarray, " class"]]:
        """Natural parameters eta (class, statistic), and A (class,)."""
        squares = np.einsum("kd,kd->k", parameters, parameters)
        return self.precision * parameters, 0.5 * self.precision * squares


def in_own_span(
    rows: Float[np.ndarray, "row feature"],
) -> tuple[Float[np.ndarray, "row coordinate"], Float[np.ndarray, "coordinate feature"]] | None:
    """Rows in an orthonormal basis of their span, and the basis; None unless that is narrower.

    Spherical Gaussians see nothing but distances, and their means are means of rows: a batch of
    fewer rows than features is fitted the same there, in arrays as narrow as it has rows. Means
    turn back by a product with the basis.
    """
    if len(rows) >= rows.shape[1]:
        return None
    basis, triangle = np.linalg.qr(rows.T.astype(np.float64))
    return np.ascontiguousarray(triangle.T), np.ascontiguousarray(basis.T)


@dataclass(frozen=True)
class Diagonal:
    """The family N(mu, diag(1 / precision)): T(x) = (x, x^2); parameters are means, precisions."""

    def statistic(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row statistic"]:
        """Return T(x), in float64."""
        wide = rows.astype(np.float64, copy=False)
        return np.hstack([wide, wide**2])

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        """Log of h(x) of each row (row,)."""
        return np.zeros(len(rows))

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class parameter"]:
        """Parameters (class, parameter) before any data."""
        return np.hstack([np.zeros((n_classes, n_features)), np.ones((n_classes, n_features))])

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class parameter"]
    ) -> Float[np.ndarray, "class parameter"]:
        """Fit every class with data; an empty one keeps its parameters or falls back."""
        mass = statistics.mass[:, np.newaxis]
        mean, mean_square = np.hsplit(statistics.mean, 2)
        deviation = np.maximum(mass * (mean_square - mean**2), SMALLEST_DEVIATION)
        fitted = np.hstack([mean, mass / deviation])
        return np.where(mass > EMPTY_MASS, fitted, previous)

    def natural(
        self, parameters: Float[np.ndarray, "class parameter"]
    ) -> tuple[Float[np.ndarray, "class statistic"], Float[np.ndarray, " class"]]:
        """Natural parameters eta (class, statistic), and A (class,)."""
        mean, precision = np.hsplit(parameters, 2)
        eta = np.hstack([precision * mean, -0.5 * precision])
        return eta, 0.5 * (precision * mean**2 - np.log(precision)).sum(1)
