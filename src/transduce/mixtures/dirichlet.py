"""Dirichlet components on the simplex: the paper's model of softmax features (equation 3)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from transduce.mixtures.family import EMPTY_MASS, Statistics, rows_of
from transduce.simplex import dirichlet
from transduce.simplex.dirichlet import Solver

LOG_FLOOR = 1e-15  # log(z + floor), so that an exact zero has a logarithm


@dataclass(frozen=True)
class Dirichlet:
    """T(z) = log z, eta = alpha - 1, A = log B(alpha). An empty class keeps its alpha."""

    solver: Solver = "fast"
    steps: int = dirichlet.MOST_STEPS
    tolerance: float = dirichlet.TOLERANCE

    def statistic(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        logarithm: Float[np.ndarray, "row feature"]
        logarithm = np.add(rows, LOG_FLOOR, dtype=np.float64)
        np.log(logarithm, out=logarithm)
        return logarithm

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        return np.zeros(len(rows))

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class feature"]:
        return np.ones((n_classes, n_features))

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class feature"]
    ) -> Float[np.ndarray, "class feature"]:
        full = np.flatnonzero(statistics.mass > EMPTY_MASS)
        fitted = dirichlet.fit(
            statistics.of(full).mean,
            rows_of(previous, full),
            solver=self.solver,
            steps=self.steps,
            tolerance=self.tolerance,
        )
        if len(full) == len(previous):
            return fitted
        parameters = previous.copy()
        parameters[full] = fitted
        return parameters

    def natural(
        self, parameters: Float[np.ndarray, "class feature"]
    ) -> tuple[Float[np.ndarray, "class feature"], Float[np.ndarray, " class"]]:
        return parameters - 1.0, dirichlet.log_normalizer(parameters)
