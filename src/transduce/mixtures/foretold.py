"""Class means as other classes foretell them from names: a Gaussian process over the names.

The means of the classes have the covariance spread [rho G + (1 - rho) I] over the classes, G = U U'
being the cosines of their centered names U, and each is seen with the noise within / n_k. What the
other classes say of the mean of class k follows from the inverse P of the covariance of what is
seen: variance 1 / P_kk, error (P m)_k / P_kk. The inverse is taken as it is for few classes; for
more classes than U has columns it is D^-1 - D^-1 U A^-1 U' D^-1, with D the diagonal part and
A = I / (spread rho) + U' D^-1 U, so that time and memory grow with the number of classes alone.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float32, Float64

FEWEST_IMAGES = 0.3  # of a class whose mean is compared with the means foretold from names
LEAST_SPREAD = 0.02  # of the variance between classes; a foretold mean is never quite certain
NAME_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)
MOST_COMPARED = 256  # classes that rho is chosen on, those of the most images

ClassRows = Float32[np.ndarray, "class feature"]
Numbers = Float64[np.ndarray, " class"]


def means_from_names(
    sums: ClassRows,
    mass: Numbers,
    within: float,
    spread: float,
    names: Float32[np.ndarray, "class embedding"],
) -> tuple[ClassRows, Numbers]:
    """Mean and variance of each class as the other classes foretell them from its name.

    Parameters
    ----------
    sums : array of shape (class, feature)
        S_k, the sum of the images of each class.
    mass : array of shape (class,)
        n_k, how many images that is.
    within : float
        The variance within classes.
    spread : float
        The variance between classes.
    names : array of shape (class, embedding)
        Directions of the class embeddings from their middle.
    """
    seen = np.flatnonzero(mass > FEWEST_IMAGES)
    means = sums[seen] / mass[seen, np.newaxis].astype(np.float32)
    noise = within / mass[seen]
    rho = _share_of_names(names[seen], means, noise, mass[seen], spread)
    foretold = np.zeros_like(sums)
    variances = np.full(len(mass), spread)
    if rho > 0.0:
        unseen = np.flatnonzero(mass <= FEWEST_IMAGES)
        process = _Process.of(names[seen], means, noise, spread, rho)
        foretold[seen], variances[seen] = means - process.errors(), process.variance - noise
        foretold[unseen], variances[unseen] = process.foretell(names[unseen])
    return foretold, np.maximum(variances, LEAST_SPREAD * spread)


def _share_of_names(
    names: ClassRows, means: ClassRows, noise: Numbers, mass: Numbers, spread: float
) -> float:
    """The rho that foretells each mean best from the others."""
    if len(mass) > MOST_COMPARED:
        largest = np.argsort(-mass, kind="stable")[:MOST_COMPARED]
        names, means, noise, mass = names[largest], means[largest], noise[largest], mass[largest]
    cosines = (names @ names.T).astype(np.float64)
    fits = []
    for rho in NAME_SHARES:
        precision = _precision(cosines, spread * rho, spread * (1.0 - rho) + noise)
        pull = precision.astype(np.float32) @ means
        squares = np.einsum("ij,ij->i", pull, pull, dtype=np.float64)
        variance = 1.0 / np.diag(precision)
        misfit = np.log(variance) + squares * variance  # of each mean, given the others
        fits.append(-float((np.minimum(mass, 1.0) * misfit).sum()))
    return NAME_SHARES[int(np.argmax(fits))]


def _precision(
    cosines: Float64[np.ndarray, "one another"], reach: float, diagonal: Numbers
) -> Float64[np.ndarray, "one another"]:
    covariance = reach * cosines
    covariance[np.diag_indices(len(diagonal))] += diagonal
    return _inverse(covariance)


@dataclass(frozen=True)
class _Process:
    """What the classes that were seen say of each other and of classes that were not."""

    names: ClassRows
    spread: float  # the variance of a mean before anything is seen
    reach: float  # spread rho: the covariance of two classes of one name
    variance: Numbers  # of each mean and its noise, given the others
    pull: ClassRows  # P m
    precision: Float64[np.ndarray, "one another"] | None  # P, or None where it is too large
    inner: Float32[np.ndarray, "embedding embedding"] | None  # U' P U then

    @classmethod
    def of(
        cls, names: ClassRows, means: ClassRows, noise: Numbers, spread: float, rho: float
    ) -> "_Process":
        reach, diagonal = spread * rho, spread * (1.0 - rho) + noise
        if len(names) <= names.shape[1]:
            precision = _precision((names @ names.T).astype(np.float64), reach, diagonal)
            pull = precision.astype(np.float32) @ means
            return cls(names, spread, reach, 1.0 / np.diag(precision), pull, precision, None)
        weighted = names / diagonal[:, np.newaxis].astype(np.float32)
        grown = (names.T @ weighted).astype(np.float64)
        inner = grown.copy()
        inner[np.diag_indices(len(inner))] += 1.0 / reach
        inverse = _inverse(inner)  # A^-1
        small = inverse.astype(np.float32)
        corner = np.einsum("ij,ij->i", weighted @ small, weighted, dtype=np.float64)
        pull = means / diagonal[:, np.newaxis].astype(np.float32)
        pull -= weighted @ (small @ (weighted.T @ means))
        variance = 1.0 / (1.0 / diagonal - corner)
        inner = grown - grown @ inverse @ grown
        return cls(names, spread, reach, variance, pull, None, inner.astype(np.float32))

    def errors(self) -> ClassRows:
        """By how much each mean differs from what the others foretell."""
        return self.pull * self.variance[:, np.newaxis].astype(np.float32)

    def foretell(self, names: ClassRows) -> tuple[ClassRows, Numbers]:
        """Mean and variance of classes that were not seen."""
        if self.precision is not None:
            across = np.float32(self.reach) * (names @ self.names.T)
            known = np.einsum(
                "ij,ij->i", across @ self.precision.astype(np.float32), across, dtype=np.float64
            )
            return across @ self.pull, self.spread - known
        assert self.inner is not None
        known = np.einsum("ij,ij->i", names @ self.inner, names, dtype=np.float64)
        means = names @ (np.float32(self.reach) * (self.names.T @ self.pull))
        return means, self.spread - self.reach**2 * known


def _inverse(matrix: Float64[np.ndarray, "row row"]) -> Float64[np.ndarray, "row row"]:
    """The inverse of a positive definite matrix, by Cholesky."""
    root, failed = scipy.linalg.lapack.dpotrf(matrix, lower=True, clean=True)
    if failed:
        raise np.linalg.LinAlgError("the covariance of the class means is not positive definite")
    lower, _ = scipy.linalg.lapack.dpotri(root, lower=True)
    return lower + np.tril(lower, -1).T
