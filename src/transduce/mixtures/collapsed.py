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
from jaxtyping import Float, Float32, Float64, Int

from transduce.mixtures.foretold import means_from_names

FEWEST_OTHERS = 0.5  # images; classes with fewer others say nothing of the variance within
LEAST_WITHIN, MOST_WITHIN = 0.05, 0.98  # of the total variance
LEAST_VARIATION = 1e-4  # of the squares; with less within classes, there is nothing to whiten
CROWDED = 1 / 16  # share of a block's entries; with more of them stored, dense products are sooner
BLOCK_ENTRIES = 1 << 18  # image x class worked on at a time
EMPTY = 1e-9

Sparse = sp.csr_array  # (image, class), float32
ClassRows = Float32[np.ndarray, "class feature"]


def class_sums(z: Sparse, rows: Float32[np.ndarray, "image feature"]) -> ClassRows:
    """S_k = sum_i z_ik y_i, of shape (class, feature)."""
    if not _crowded(z):
        return np.asarray(z.T @ rows)
    sums = np.zeros((z.shape[1], rows.shape[1]), np.float32)
    for part in _blocks(z):
        sums += z[part].toarray().T @ rows[part]
    return sums


def _crowded(z: Sparse) -> bool:
    return z.nnz > CROWDED * z.shape[0] * z.shape[1]


def _blocks(z: Sparse) -> list[slice]:
    """Blocks of images that depend on the shape of `z` alone."""
    step = max(1, BLOCK_ENTRIES // z.shape[1])
    return [slice(start, start + step) for start in range(0, z.shape[0], step)]


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
    seen = np.flatnonzero(np.bincount(z.indices, minlength=z.shape[1]))  # classes with any image
    roots = class_sums(z, rows)[seen] / np.sqrt(np.maximum(mass[seen], EMPTY))[:, np.newaxis]
    roots = roots.astype(np.float32)
    covariance = rows.T @ rows
    total = np.trace(covariance)
    covariance -= roots.T @ roots
    if np.trace(covariance) <= LEAST_VARIATION * total:
        return np.eye(width, dtype=np.float32)  # copies of a few images: rounding errors alone
    covariance *= np.float32(share * width / np.trace(covariance))
    covariance[np.diag_indices(width)] += np.float32(1.0 - share)
    return np.linalg.cholesky(covariance)


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
    squares = np.einsum("ij,ij->i", sums, sums, dtype=np.float64)
    lengths = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    weighted = weight = 0.0
    for block in _blocks(z):
        here = z[block]
        image = np.repeat(np.arange(here.shape[0]), np.diff(here.indptr))
        kept = np.flatnonzero(mass[here.indices] - here.data > FEWEST_OTHERS)
        image, k, share = image[kept], here.indices[kept], here.data[kept].astype(np.float64)
        n, length = mass[k] - share, lengths[block][image]
        dot = _products(rows[block], sums, image, k, dense=_crowded(here)).astype(np.float64)
        cross = dot - share * length
        square = squares[k] - 2.0 * share * dot + share**2 * length
        distance = length - 2.0 * cross / n + square / n**2
        weighted += float((share * distance * n / (n + 1.0)).sum())
        weight += float(share.sum())
    within = total if weight < 1e-2 else weighted / weight
    return min(max(within, LEAST_WITHIN * total), MOST_WITHIN * total)


def _products(
    rows: Float32[np.ndarray, "image feature"],
    sums: ClassRows,
    image: Int[np.ndarray, " entry"],
    k: Int[np.ndarray, " entry"],
    *,
    dense: bool,
) -> Float32[np.ndarray, " entry"]:
    """y_i . S_k of the stored entries (i, k)."""
    if dense:
        used = np.flatnonzero(np.bincount(k, minlength=len(sums)))
        place = np.zeros(len(sums), np.int64)
        place[used] = np.arange(len(used))
        return (rows @ sums[used].T)[image, place[k]]
    return np.concatenate(
        [
            np.einsum("ij,ij->i", rows[image[part]], sums[k[part]])
            for part in np.array_split(np.arange(len(k)), 1 + len(k) // 4096)
        ]
    )
