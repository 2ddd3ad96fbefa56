"""Gaussian classes with their means integrated out, each image left out of its own class.

With assignments z (image, class), n_k = sum_i z_ik and S_k = sum_i z_ik y_i, image i sees class k
as the other images made it: n_k - z_ik images with the sum S_k - z_ik y_i. The mean of class k has
the prior N(m_k, v_k), worth tau_k = V_w / v_k images at m_k, so that the predictive density of y_i
is a Gaussian with mean (S_k - z_ik y_i + tau_k m_k) / (n_k - z_ik + tau_k) and variance
V_w (1 + 1 / (n_k - z_ik + tau_k)). All that is needed of the batch are sums over its images.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Float32, Float64

FEWEST_OTHERS = 0.5  # images; classes with fewer others say nothing of the variance within
FEWEST_IMAGES = 0.3  # of a class whose mean is compared with the means foretold from names
LEAST_WITHIN, MOST_WITHIN = 0.05, 0.98  # of the total variance
LEAST_VARIATION = 1e-4  # of the squares; with less within classes, there is nothing to whiten
LEAST_SPREAD = 0.02  # of the variance between classes; a foretold mean is never quite certain
NAME_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)
EMPTY = 1e-9

Sparse = sp.csr_array  # (image, class), float32
ClassRows = Float32[np.ndarray, "class feature"]


def class_sums(z: Sparse, rows: Float32[np.ndarray, "image feature"]) -> ClassRows:
    """S_k = sum_i z_ik y_i, of shape (class, feature)."""
    return np.asarray(z.T @ rows)


def deviations_within(
    centered: Float32[np.ndarray, "image feature"],
    z: Sparse,
    mass: Float64[np.ndarray, " class"],
    pseudo_images: float,
) -> Float32[np.ndarray, " feature"]:
    """Standard deviation (feature,) of each feature within classes, up to a common factor.

    Its square is shrunk towards the mean over features by `pseudo_images`.
    """
    squares = np.einsum("ij,ij->j", centered, centered, dtype=np.float64)
    sums = class_sums(z, centered)
    between = np.einsum("kj,kj,k->j", sums, sums, 1.0 / np.maximum(mass, EMPTY))
    n_images = len(centered)
    variance = np.maximum(squares - between, 0.0) / n_images
    shrunk = n_images * variance + pseudo_images * variance.mean()
    variance = shrunk / (n_images + pseudo_images) + 1e-12
    return np.sqrt(variance / variance.mean()).astype(np.float32)


def whitening(
    rows: Float32[np.ndarray, "image feature"],
    z: Sparse,
    mass: Float64[np.ndarray, " class"],
    share: float,
) -> Float32[np.ndarray, "feature feature"]:
    """The lower triangular C with C C' = share Sigma + (1 - share) I.

    Sigma is the covariance within classes, scaled to the trace of I.
    """
    width = rows.shape[1]
    seen = np.unique(z.indices)  # classes with any image
    roots = class_sums(z, rows)[seen] / np.sqrt(np.maximum(mass[seen], EMPTY))[:, np.newaxis]
    covariance = (rows.T @ rows).astype(np.float64)
    total = np.trace(covariance)
    covariance -= roots.T @ roots
    if np.trace(covariance) <= LEAST_VARIATION * total:
        return np.eye(width, dtype=np.float32)  # copies of a few images: rounding errors alone
    covariance *= share * width / np.trace(covariance)
    covariance[np.diag_indices(width)] += 1.0 - share
    return np.linalg.cholesky(covariance).astype(np.float32)


@dataclass(frozen=True)
class CollapsedGaussians:
    """The classes of a batch, as each of its images sees them without itself.

    `sums` and `mass` include `pseudo_images` tau_k at the prior means m_k; `mass` is n_k alone.
    """

    sums: Float32[np.ndarray, "class feature"]
    mass: Float32[np.ndarray, " class"]
    pseudo_images: Float32[np.ndarray, " class"]
    within: float
    total: float

    @classmethod
    def fit(
        cls,
        rows: Float32[np.ndarray, "image feature"],
        z: Sparse,
        mass: Float64[np.ndarray, " class"],
        measured: slice,
        names: Float32[np.ndarray, "class embedding"] | None,
    ) -> "CollapsedGaussians":
        """Fit variances and prior means to `rows`, assigned to classes by `z`.

        The variances are those of the `measured` rows; without `names` all prior means are 0.
        """
        sums = class_sums(z, rows)
        total = float(np.einsum("ij,ij->", rows[measured], rows[measured], dtype=np.float64))
        total = total / len(rows[measured]) + 1e-12
        within = _variance_within(rows[measured], z[measured], mass, sums, total)
        spread = total - within
        pseudo_images = np.full(len(mass), within / spread, np.float32)
        if names is not None:
            means, variances = means_from_names(sums, mass, within, spread, names)
            pseudo_images = (within / variances).astype(np.float32)
            means *= pseudo_images[:, np.newaxis]
            sums += means
        return cls(
            sums=sums,
            mass=mass.astype(np.float32),
            pseudo_images=pseudo_images,
            within=within,
            total=total,
        )

    def log_density(
        self,
        rows: Float[np.ndarray, "row feature"],
        z: Float32[np.ndarray, "row class"] | float = 0.0,
    ) -> Float[np.ndarray, "row class"]:
        """Log predictive density per effective dimension, relative to the whole batch.

        `z` is how much of each row is in each class; it is taken out of the class.
        """
        # With a = 1 / (n - z + tau) and g = 1 + a z, the squared distance to the class mean is
        # |y|^2 g^2 - 2 a g y.S + a^2 |S|^2.
        a = np.maximum(self.mass - z, 0.0)
        a += self.pseudo_images
        np.reciprocal(a, out=a)
        g = a * z
        g += 1.0
        distance = rows @ self.sums.T
        distance *= a
        distance *= -2.0
        distance += g * np.einsum("ij,ij->i", rows, rows)[:, np.newaxis]
        distance *= g
        distance += a * a * np.einsum("ij,ij->i", self.sums, self.sums)
        density = distance  # from here on, in place
        density /= 1.0 + a
        density *= np.float32(1.0 / self.within)
        density += np.log1p(a)
        density += np.float32(np.log(self.within / self.total))
        density *= -0.5
        return density


def _variance_within(
    rows: Float32[np.ndarray, "image feature"],
    z: Sparse,
    mass: Float64[np.ndarray, " class"],
    sums: ClassRows,
    total: float,
) -> float:
    """Mean squared distance of an image to the mean of the others of its class."""
    image = np.repeat(np.arange(len(rows)), np.diff(z.indptr))
    others = mass[z.indices] - z.data
    kept = np.flatnonzero(others > FEWEST_OTHERS)
    weighted = weight = 0.0
    squares = np.einsum("ij,ij->i", sums, sums, dtype=np.float64)
    lengths = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    for part in np.array_split(kept, max(1, len(kept) // 4096)):
        k, share, n = z.indices[part], z.data[part].astype(np.float64), others[part]
        length = lengths[image[part]]
        dot = np.einsum("ij,ij->i", rows[image[part]], sums[k]).astype(np.float64)
        cross = dot - share * length
        square = squares[k] - 2.0 * share * dot + share**2 * length
        distance = length - 2.0 * cross / n + square / n**2
        weighted += float((share * distance * n / (n + 1.0)).sum())
        weight += float(share.sum())
    within = total if weight < 1e-2 else weighted / weight
    return min(max(within, LEAST_WITHIN * total), MOST_WITHIN * total)


def means_from_names(
    sums: ClassRows,
    mass: Float64[np.ndarray, " class"],
    within: float,
    spread: float,
    names: Float32[np.ndarray, "class embedding"],
) -> tuple[ClassRows, Float64[np.ndarray, " class"]]:
    """Mean and variance of each class as the other classes foretell them from its name.

    The class means are a Gaussian process over the names, with covariance
    spread [rho G + (1 - rho) I] and noise within / n_k; G holds the cosines of the centered
    `names`, and rho is the share that foretells each mean best from the others.
    """
    seen = np.flatnonzero(mass > FEWEST_IMAGES)
    means = sums[seen] / mass[seen, np.newaxis]
    noise = within / mass[seen]
    cosines = names @ names[seen].T
    best, kept = -np.inf, None
    for rho in NAME_SHARES:
        covariance = spread * rho * cosines[seen].astype(np.float64)
        covariance[np.diag_indices(len(seen))] += spread * (1.0 - rho) + noise
        precision = np.linalg.inv(covariance)
        variance = 1.0 / np.diag(precision)
        pull = precision @ means
        error = pull * variance[:, np.newaxis]
        misfit = np.log(variance) + (error**2).sum(1) / variance
        fit = -float((np.minimum(mass[seen], 1.0) * misfit).sum())
        if fit > best:
            best, kept = fit, (rho, precision, variance, pull, error)
    assert kept is not None
    rho, precision, variance, pull, error = kept
    across = np.float32(spread * rho) * cosines
    foretold = across @ pull.astype(np.float32)
    variances = spread - ((across @ precision) * across).sum(1)
    foretold[seen], variances[seen] = means - error, variance - noise
    return foretold, np.maximum(variances, LEAST_SPREAD * spread)
