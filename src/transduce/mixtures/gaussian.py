"""Gaussian components: one fixed precision for all, or a diagonal precision for each class."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from transduce.mixtures.family import EMPTY_MASS, Statistics

SMALLEST_DEVIATION = 1e-15  # keeps the precision of a class with one image finite


@dataclass(frozen=True)
class Spherical:
    """N(mu, I / precision): T(x) = x, eta = precision mu. Its parameters are the centroids.

    An empty class keeps its centroid, or falls back to the origin (hard k-means as published).
    """

    precision: float = 1.0
    empty: Literal["keep", "origin"] = "keep"

    def statistic(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        return rows.astype(np.float64, copy=False)

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        squares: Float[np.ndarray, " row"] = np.einsum("nd,nd->n", rows, rows, dtype=np.float64)
        return -0.5 * self.precision * squares

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class feature"]:
        return np.zeros((n_classes, n_features))

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class feature"]
    ) -> Float[np.ndarray, "class feature"]:
        full = (statistics.mass > EMPTY_MASS)[:, np.newaxis]
        return np.where(full, statistics.mean, previous if self.empty == "keep" else 0.0)

    def natural(
        self, parameters: Float[np.ndarray, "class feature"]
    ) -> tuple[Float[np.ndarray, "class feature"], Float[np.ndarray, " class"]]:
        squares = np.einsum("kd,kd->k", parameters, parameters)
        return self.precision * parameters, 0.5 * self.precision * squares


@dataclass(frozen=True)
class Diagonal:
    """N(mu, diag(1 / precision)): T(x) = (x, x^2). Its parameters are means, then precisions."""

    def statistic(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row statistic"]:
        wide = rows.astype(np.float64, copy=False)
        return np.hstack([wide, wide**2])

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        return np.zeros(len(rows))

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class parameter"]:
        return np.hstack([np.zeros((n_classes, n_features)), np.ones((n_classes, n_features))])

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class parameter"]
    ) -> Float[np.ndarray, "class parameter"]:
        mass = statistics.mass[:, np.newaxis]
        mean, mean_square = np.hsplit(statistics.mean, 2)
        deviation = np.maximum(mass * (mean_square - mean**2), SMALLEST_DEVIATION)
        fitted = np.hstack([mean, mass / deviation])
        return np.where(mass > EMPTY_MASS, fitted, previous)

    def natural(
        self, parameters: Float[np.ndarray, "class parameter"]
    ) -> tuple[Float[np.ndarray, "class statistic"], Float[np.ndarray, " class"]]:
        mean, precision = np.hsplit(parameters, 2)
        eta = np.hstack([precision * mean, -0.5 * precision])
        return eta, 0.5 * (precision * mean**2 - np.log(precision)).sum(1)
