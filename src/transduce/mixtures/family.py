"""`ComponentFamily`: exponential families of class densities, fitted from sums over the data."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

EMPTY_MASS = 1e-15  # a class that holds no more than this has no data to be fitted to


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sufficient statistics of every class; those of a whole are the sum of those of its parts.

    Parameters
    ----------
    mass : array of shape (class,)
        How much data each class holds: the sum of its assignments.
    total : array of shape (class, statistic)
        The sum of T(x), weighted by the assignments.
    """

    mass: Float[np.ndarray, " class"]
    total: Float[np.ndarray, "class statistic"]

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(self.mass + other.mass, self.total + other.total)

    def of(self, classes: Int[np.ndarray, " chosen"]) -> "Statistics":
        """Return the statistics of some of the classes."""
        return Statistics(self.mass[classes], rows_of(self.total, classes))

    @property
    def mean(self) -> Float[np.ndarray, "class statistic"]:
        """Mean of T(x) in each class (class, statistic); zero where there is no data."""
        return self.total / np.maximum(self.mass, np.finfo(np.float64).tiny)[:, np.newaxis]


def rows_of(
    array: Float[np.ndarray, "row column"], chosen: Int[np.ndarray, " chosen"]
) -> Float[np.ndarray, "chosen column"]:
    """Return `array[chosen]` for increasing row indices, without a copy if that is all rows."""
    return array if len(chosen) == len(array) else array[chosen]


def log_likelihood(
    data: Statistics,
    eta: Float[np.ndarray, "class statistic"],
    log_normalizer: Float[np.ndarray, " class"],
) -> Float[np.ndarray, " class"]:
    """Return sum_n u_n log p(x_n | theta) of each class (class,), up to the carrier."""
    return np.einsum("kd,kd->k", data.total, eta) - data.mass * log_normalizer


@runtime_checkable
class ComponentFamily(Protocol):
    """A family of class densities p(x | theta) = h(x) exp(T(x) . eta(theta) - A(theta)).

    Every family of the paper has this form, so that the log densities of a whole batch are one
    matrix product, and its fit another one followed by `maximize`. A new family is a class with
    these five functions; a `Recipe` makes a method of it.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce.mixtures.dirichlet import Dirichlet
    >>> from transduce.mixtures.family import ComponentFamily, Statistics
    >>> isinstance(Dirichlet(), ComponentFamily)
    True
    >>> family, rows = Dirichlet(), np.random.default_rng(0).dirichlet([2, 3, 5], 20_000)
    >>> data = Statistics(np.array([20_000.0]), family.statistic(rows).sum(0, keepdims=True))
    >>> family.maximize(data, family.initial(1, 3)).round().tolist()
    [[2.0, 3.0, 5.0]]
    """

    def statistic(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row statistic"]:
        """Return T(x) of each row (row, statistic), in float64."""
        ...

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        """Return log h(x) of each row (row,): what is the same for every class."""
        ...

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class parameter"]:
        """Return parameters (class, parameter) before any data."""
        ...

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class parameter"]
    ) -> Float[np.ndarray, "class parameter"]:
        """Return the parameters of maximum likelihood (class, parameter), from `previous` on.

        A class whose mass is at most `EMPTY_MASS` has no data: the family decides what it becomes.
        """
        ...

    def natural(
        self, parameters: Float[np.ndarray, "class parameter"]
    ) -> tuple[Float[np.ndarray, "class statistic"], Float[np.ndarray, " class"]]:
        """Return eta(theta) (class, statistic) and A(theta) (class,)."""
        ...
