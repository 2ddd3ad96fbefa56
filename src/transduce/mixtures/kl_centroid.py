"""Components that compare by Kullback-Leibler divergence: p(z | c) = exp(-KL(z || c))."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from transduce.mixtures.family import Statistics

LOG_FLOOR = 1e-15


@dataclass(frozen=True)
class KLCentroid:
    """The family exp(-KL(z || c)): T(z) = z, eta = log c, A = 0; the centroid is the mean.

    The centroid of an empty class is zero.

    As published, a class that holds less than one image's worth is divided by one all the same:
    its centroid sums to less than one, and it loses every close contest.
    """

    def statistic(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        """Return z itself, in float64."""
        return rows.astype(np.float64, copy=False)

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        """Log of h(x) of each row (row,)."""
        wide = rows.astype(np.float64, copy=False)
        return -(wide * np.log(wide + LOG_FLOOR)).sum(1)

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class feature"]:
        """Parameters (class, parameter) before any data."""
        return np.zeros((n_classes, n_features))

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class feature"]
    ) -> Float[np.ndarray, "class feature"]:
        """Centroid of every class: its mean, or less for a class of less than one image."""
        return statistics.total / np.maximum(statistics.mass, 1.0)[:, np.newaxis]

    def natural(
        self, parameters: Float[np.ndarray, "class feature"]
    ) -> tuple[Float[np.ndarray, "class feature"], Float[np.ndarray, " class"]]:
        """Natural parameters eta (class, statistic), and A (class,)."""
        return np.log(parameters + LOG_FLOOR), np.zeros(len(parameters))
