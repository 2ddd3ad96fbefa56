"""What a class looks like: an exponential family, fitted from sums that add up over partitions."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

EMPTY_MASS = 1e-15  # a class that holds no more than this has no data to be fitted to


@dataclass(frozen=True, slots=True)
class Statistics:
    """All that a fit needs of the data: how much of it each class holds, and the sum of T(x).

    The statistics of a whole are the sum of those of its parts.
    """

    mass: Float[np.ndarray, " class"]
    total: Float[np.ndarray, "class statistic"]

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(self.mass + other.mass, self.total + other.total)

    def of(self, classes: Int[np.ndarray, " chosen"]) -> "Statistics":
        return Statistics(self.mass[classes], rows_of(self.total, classes))

    @property
    def mean(self) -> Float[np.ndarray, "class statistic"]:
        """The mean of T(x) in each class; zero where there is no data."""
        mean: Float[np.ndarray, "class statistic"]
        mean = self.total / np.maximum(self.mass, np.finfo(np.float64).tiny)[:, np.newaxis]
        return mean


def rows_of(
    array: Float[np.ndarray, "row column"], chosen: Int[np.ndarray, " chosen"]
) -> Float[np.ndarray, "chosen column"]:
    """`array[chosen]` for increasing row numbers, without the copy when that is all of them."""
    return array if len(chosen) == len(array) else array[chosen]


def log_likelihood(
    data: Statistics,
    eta: Float[np.ndarray, "class statistic"],
    log_normalizer: Float[np.ndarray, " class"],
) -> Float[np.ndarray, " class"]:
    """sum_n u_n log p(x_n | theta) of each class, up to the carrier, from the statistics alone."""
    value: Float[np.ndarray, " class"]
    value = np.einsum("kd,kd->k", data.total, eta) - data.mass * log_normalizer
    return value


@runtime_checkable
class ComponentFamily(Protocol):
    """A family of densities p(x | theta) = h(x) exp(T(x) . eta(theta) - A(theta)).

    Every family of the paper has this form, so that the log densities of a whole batch are one
    matrix product, and its fit another one followed by `maximize`.
    """

    def statistic(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row statistic"]:
        """T(x) in float64."""
        ...

    def log_carrier(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, " row"]:
        """log h(x): the part of the log density that is the same for every class."""
        ...

    def initial(self, n_classes: int, n_features: int) -> Float[np.ndarray, "class parameter"]:
        """Parameters before any data."""
        ...

    def maximize(
        self, statistics: Statistics, previous: Float[np.ndarray, "class parameter"]
    ) -> Float[np.ndarray, "class parameter"]:
        """Maximum likelihood, a row for each class; decides what an empty class means."""
        ...

    def natural(
        self, parameters: Float[np.ndarray, "class parameter"]
    ) -> tuple[Float[np.ndarray, "class statistic"], Float[np.ndarray, " class"]]:
        """eta(theta) and A(theta)."""
        ...
