"""Class means predicted from names and the other classes: a Gaussian process over the names.

The means of the classes have the covariance spread [rho G + (1 - rho) I] over the classes, G = U U'
being the cosines of their centered names U, and each is seen with the noise within / n_k. What the
other classes say of the mean of class k follows from the inverse P of the covariance of what is
seen: variance 1 / P_kk, error (P m)_k / P_kk. The inverse is taken as it is for few classes. For
more classes than U has columns it is D^-1 - D^-1 U A^-1 U' D^-1, with D the diagonal part and
A = I / (spread rho) + U' D^-1 U: means are fitted to names by a ridge regression, whose error at
class k grows by D_k / (D_k - u_k' A^-1 u_k) as class k is left out of it. So time and memory grow
with the number of classes alone.
"""

import numpy as np
import scipy.linalg
from jaxtyping import Float32, Float64, Int

from transduce.mixtures.within import row_squares, solve_rows
from transduce.simplex.threads import product

FEWEST_IMAGES = 0.3  # of a class whose mean is compared with the means predicted from names
LEAST_SPREAD = 0.02  # of the variance between classes; a predicted mean is never quite certain
NAME_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)
MOST_COMPARED = 256  # classes that rho is chosen on, those of the most images

ClassRows = Float32[np.ndarray, "class feature"]
Numbers = Float64[np.ndarray, " class"]
Indices = Int[np.ndarray, " seen"]


def means_from_names(
    sums: ClassRows,
    mass: Numbers,
    within: float,
    spread: float,
    names: Float32[np.ndarray, "class embedding"],
) -> tuple[ClassRows, Numbers]:
    """Mean and variance of each class as predicted from its name by the other classes.

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
    if rho == 0.0:
        return np.zeros_like(sums), np.full(len(mass), spread)
    foretell = _by_process if len(seen) <= names.shape[1] else _by_regression
    foretold, variances = foretell(names, seen, means, noise, spread, rho)
    return foretold, np.maximum(variances, LEAST_SPREAD * spread)


def _share_of_names(
    names: ClassRows, means: ClassRows, noise: Numbers, mass: Numbers, spread: float
) -> float:
    """The rho by which the other classes predict each mean best."""
    if len(mass) > MOST_COMPARED:
        largest = np.argsort(-mass, kind="stable")[:MOST_COMPARED]
        names, means, noise, mass = names[largest], means[largest], noise[largest], mass[largest]
    cosines = (names @ names.T).astype(np.float64)
    weight = np.minimum(mass, 1.0)
    fits = [-float(weight @ _misfit(cosines, means, noise, spread, rho)) for rho in NAME_SHARES]
    return NAME_SHARES[int(np.argmax(fits))]


def _misfit(
    cosines: Float64[np.ndarray, "one another"],
    means: ClassRows,
    noise: Numbers,
    spread: float,
    rho: float,
) -> Numbers:
    """How badly each mean is predicted from the others: minus twice its log density."""
    if rho == 0.0:
        variance = spread + noise
        return np.log(variance) + row_squares(means) / variance
    precision = _precision(cosines, spread * rho, spread * (1.0 - rho) + noise)
    squares = row_squares(precision.astype(np.float32) @ means).astype(np.float64)
    variance = 1.0 / np.diag(precision)
    return np.log(variance) + squares * variance


def _precision(
    cosines: Float64[np.ndarray, "one another"], reach: float, diagonal: Numbers
) -> Float64[np.ndarray, "one another"]:
    covariance = reach * cosines
    covariance[np.diag_indices(len(diagonal))] += diagonal
    return _inverse(covariance)


def _by_process(
    names: ClassRows, seen: Indices, means: ClassRows, noise: Numbers, spread: float, rho: float
) -> tuple[ClassRows, Numbers]:
    """Mean and variance of every class from the inverse over the few that were seen."""
    across = product(names, names[seen].T)
    reach, diagonal = spread * rho, spread * (1.0 - rho) + noise
    precision = _precision(across[seen].astype(np.float64), reach, diagonal)
    across *= np.float32(reach)
    small = precision.astype(np.float32)
    pull = small @ means
    foretold, known = across @ pull, np.einsum("ij,ij->i", across @ small, across)
    variances = spread - known.astype(np.float64)
    alone = 1.0 / np.diag(precision)  # variance of each mean seen and its noise, given the others
    foretold[seen] = means - pull * alone[:, np.newaxis].astype(np.float32)
    variances[seen] = alone - noise
    return foretold, variances


def _by_regression(
    names: ClassRows, seen: Indices, means: ClassRows, noise: Numbers, spread: float, rho: float
) -> tuple[ClassRows, Numbers]:
    """Mean and variance of every class, by a regression of means on names: for many classes."""
    reach, diagonal = spread * rho, spread * (1.0 - rho) + noise
    weighted = names[seen] / diagonal[:, np.newaxis].astype(np.float32)
    inner = product(names[seen].T, weighted).astype(np.float64)
    inner[np.diag_indices(len(inner))] += 1.0 / reach
    root = scipy.linalg.cholesky(inner, lower=True, check_finite=False).astype(np.float32)
    placed = solve_rows(root, names)  # u' A^-1 u is the squared length of u placed so
    fitted = product(weighted.T, means)
    foretold = product(placed, scipy.linalg.solve_triangular(root, fitted, lower=True))
    leverage = row_squares(placed).astype(np.float64)
    variances = spread - reach * row_squares(names) + leverage
    left_out = diagonal / (diagonal - leverage[seen])
    errors = (means - foretold[seen]) * left_out[:, np.newaxis].astype(np.float32)
    foretold[seen], variances[seen] = means - errors, diagonal * left_out - noise
    return foretold, variances


def _inverse(matrix: Float64[np.ndarray, "row row"]) -> Float64[np.ndarray, "row row"]:
    """The inverse of a positive definite matrix, by Cholesky."""
    root, failed = scipy.linalg.lapack.dpotrf(matrix, lower=True, clean=True)
    if failed:
        raise np.linalg.LinAlgError("the covariance of the class means is not positive definite")
    lower, _ = scipy.linalg.lapack.dpotri(root, lower=True)
    return lower + np.tril(lower, -1).T
