"""Components that compare by Kullback-Leibler divergence: p(z | c) = exp(-KL(z || c))."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from transduce.mixtures.family import Statistics

LOG_FLOOR = 1e-15


@dataclass(frozen=True)
class KLCentroid:
    """T(z) = z, eta = log c, A = 0. The centroid is the mean; an empty class has none (zeros).

    As published, a class that holds less than one image's worth is divided by one all the same:
    its centroid sums to less than one, and it loses every close contest.
    """

    def statistic(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        return rows.astype(np.float64, copy=False)

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        wide = rows.astype(np.float64, copy=False)
        entropy: Float[np.ndarray, " row"] = -(wide * np.log(wide + LOG_FLOOR)).sum(1)
        return entropy

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class feature"]:
        return np.zeros((n_classes, n_features))

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class feature"]
    ) -> Float[np.ndarray, "class feature"]:
        centroids: Float[np.ndarray, "class feature"]
        centroids = statistics.total / np.maximum(statistics.mass, 1.0)[:, np.newaxis]
        return centroids

    def natural(
        self, parameters: Float[np.ndarray, "class feature"]
    ) -> tuple[Float[np.ndarray, "class feature"], Float[np.ndarray, " class"]]:
        return np.log(parameters + LOG_FLOOR), np.zeros(len(parameters))
