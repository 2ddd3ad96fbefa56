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
    """The Dirichlet family: T(z) = log z, eta = alpha - 1, A = log B(alpha).

    An empty class keeps its alpha.

    Parameters
    ----------
    solver : {"fast", "mm", "minka"}, default="fast"
        How alpha is fitted; see `transduce.simplex.dirichlet`.
    steps : int, default=1000
        Steps of a fit, at most.
    tolerance : float, default=1e-11
        Squared relative change at which "mm" and "minka" stop.
    """

    solver: Solver = "fast"
    steps: int = dirichlet.MOST_STEPS
    tolerance: float = dirichlet.TOLERANCE

    def statistic(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        """Return log(z + 1e-15), in float64."""
        logarithm = np.add(rows, LOG_FLOOR, dtype=np.float64)
        np.log(logarithm, out=logarithm)
        return logarithm

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        """Log of h(x) of each row (row,)."""
        return np.zeros(len(rows))

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class feature"]:
        """Parameters (class, parameter) before any data."""
        return np.ones((n_classes, n_features))

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class feature"]
    ) -> Float[np.ndarray, "class feature"]:
        """Fit alpha of every class with data; the others keep theirs."""
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
        """Natural parameters eta (class, statistic), and A (class,)."""
        return parameters - 1.0, dirichlet.log_normalizer(parameters)
