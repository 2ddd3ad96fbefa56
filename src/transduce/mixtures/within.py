"""How images vary within their classes, from sums over them that add up over parts of a batch.

With assignments z (image, class) and rows x: the sums S_k = sum_i z_ik x_i and the matrix of
products sum_i x_i x_i' are all that the scale of each feature and the whitening need. The variance
within classes leaves each image out of its own class, which takes a pass over the stored entries.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Float, Float32, Float64, Int

from transduce.simplex.threads import over_slices, product

FEWEST_OTHERS = 0.5  # images; classes with fewer others say nothing of the variance within
LEAST_WITHIN, MOST_WITHIN = 0.05, 0.98  # of the total variance
LEAST_WHITENING = 1e-4  # of a share below this, whitening would change no digit that counts
LEAST_VARIATION = 1e-4  # of the squares; with less within classes, there is nothing to whiten
CROWDED = 1 / 16  # share of a block's entries; with more of them stored, dense products are sooner
BLOCK_ENTRIES = 1 << 18  # image x class worked on at a time
ENTRIES_AT_ONCE = 512
EMPTY = 1e-9

Sparse = sp.csr_array  # (image, class), float32
RowArray = Float32[np.ndarray, "image feature"]
ClassRows = Float32[np.ndarray, "class feature"]
PerClass = Float64[np.ndarray, " class"]
Square = Float32[np.ndarray, "feature feature"]


def class_sums(z: Sparse, rows: RowArray) -> ClassRows:
    """S_k = sum_i z_ik x_i, of shape (class, feature)."""
    if not crowded(z.nnz, z.shape):
        return np.asarray(z.T @ rows)
    sums = np.zeros((z.shape[1], rows.shape[1]), np.float32)
    step = max(1, BLOCK_ENTRIES // z.shape[1])
    for start in range(0, z.shape[0], step):
        part = slice(start, start + step)
        sums += product(z[part].toarray().T, rows[part])
    return sums


def crowded(stored: int, shape: tuple[int, int]) -> bool:
    """Whether so many entries are stored that dense products are faster."""
    return stored > CROWDED * shape[0] * shape[1]


def entry_products(rows: RowArray, table: ClassRows, z: Sparse) -> Float32[np.ndarray, " entry"]:
    """x_i . t_k of the stored entries (i, k) of z (image, class), in their order."""
    products = np.empty(z.nnz, np.float32)

    def fill(part: slice) -> None:
        here = slice(int(z.indptr[part.start]), int(z.indptr[part.stop]))
        k, counts = z.indices[here], np.diff(z.indptr[part.start : part.stop + 1])
        image = np.repeat(np.arange(len(counts)), counts)
        products[here] = _entries_of_block(rows[part], table, image, k)

    step = max(1, BLOCK_ENTRIES // z.shape[1])
    starts = range(0, z.shape[0], step)
    over_slices(fill, [slice(start, min(start + step, z.shape[0])) for start in starts])
    return products


def _entries_of_block(
    block: RowArray,
    table: ClassRows,
    image: Int[np.ndarray, " entry"],
    k: Int[np.ndarray, " entry"],
) -> Float32[np.ndarray, " entry"]:
    """x_i . t_k of some entries of a block of rows."""
    if crowded(len(k), (len(block), len(table))):
        used = np.flatnonzero(np.bincount(k, minlength=len(table)))
        if 2 * len(used) > len(table):
            return (block @ table.T)[image, k]
        column = np.zeros(len(table), np.int64)
        column[used] = np.arange(len(used))
        return (block @ table[used].T)[image, column[k]]
    products = np.empty(len(k), np.float32)
    for first in range(0, len(k), ENTRIES_AT_ONCE):
        part = slice(first, first + ENTRIES_AT_ONCE)
        np.einsum("ij,ij->i", block[image[part]], table[k[part]], out=products[part])
    return products


@dataclass(frozen=True)
class Scaling:
    """How rows are brought to one variance within classes, and decorrelated."""

    scale: Float32[np.ndarray, " feature"]
    root: Square | None  # C of the whitening
    share: float  # of the covariance within classes in it
    transform: Square  # both: C^-1 D^-1, D being the scale

    @classmethod
    def of(
        cls, scale: Float32[np.ndarray, " feature"], root: Square | None, share: float
    ) -> "Scaling":
        """Features divided by their scale, and then whitened."""
        inverse = np.eye(len(scale), dtype=np.float32) if root is None else lower_inverse(root)
        return cls(scale, root, share, inverse / scale)

    @classmethod
    def of_coordinates(
        cls, scale: Float32[np.ndarray, " feature"], root: Square, share: float
    ) -> "Scaling":
        """The scaling of rows in a basis: the scale of features is in the root (`basis.py`)."""
        return cls(scale, root, share, lower_inverse(root))

    def applied(self, rows: RowArray) -> RowArray:
        """The rows, scaled and whitened."""
        return rows / self.scale if self.root is None else product(rows, self.transform.T)


def scaling_within(
    products: Float64[np.ndarray, "feature feature"],
    sums: Float64[np.ndarray, "class feature"],
    mass: PerClass,
    n_images: float,
    *,
    pseudo_images: float,
    share: float,
) -> Scaling:
    """The scaling of a batch.

    Parameters
    ----------
    products : array of shape (feature, feature)
        Sum x x' over the images x.
    sums, mass : arrays of shape (class, feature) and (class,)
        Sums and sizes of the classes.
    n_images : float
        How many images there are.
    pseudo_images : float
        Images' worth of "all features vary alike".
    share : float
        How far the covariance within classes is trusted, rather than that features are
        uncorrelated.
    """
    between = np.einsum("kj,kj,k->j", sums, sums, 1.0 / np.maximum(mass, EMPTY))
    scale = shrunk_deviations(np.diag(products) - between, n_images, pseudo_images)
    root = None
    if share > LEAST_WHITENING:
        by = scale.astype(np.float64)
        root = _whitening(products / np.outer(by, by), sums / by, mass, share)
    return Scaling.of(scale, root, share if root is not None else 0.0)


def shrunk_deviations(
    squares: Float64[np.ndarray, " feature"], n_images: float, pseudo_images: float
) -> Float32[np.ndarray, " feature"]:
    """Standard deviation (feature,) of each feature within classes, up to a common factor.

    Its square is shrunk towards the mean over features by `pseudo_images`. `squares` are the sums
    of squares of each feature within classes.
    """
    variance = np.maximum(squares, 0.0) / n_images
    shrunk = n_images * variance + pseudo_images * variance.mean()
    variance = shrunk / (n_images + pseudo_images) + 1e-12
    return np.sqrt(variance / variance.mean()).astype(np.float32)


def _whitening(
    products: Float64[np.ndarray, "feature feature"],
    sums: Float64[np.ndarray, "class feature"],
    mass: PerClass,
    share: float,
) -> Square | None:
    """The lower triangular C with C C' = share Sigma + (1 - share) I.

    Sigma is the covariance within classes, scaled to the trace of I; `products` is sum_i x_i x_i'.
    None if there is nothing to whiten: copies of a few images, whose rest is rounding errors.
    """
    width = len(products)
    used = np.flatnonzero(mass > EMPTY)
    roots = (sums[used] / np.sqrt(mass[used])[:, np.newaxis]).astype(np.float32)
    covariance = products - roots.T @ roots
    trace = float(np.trace(covariance))
    if trace <= LEAST_VARIATION * float(np.trace(products)):
        return None
    covariance *= share * width / trace
    covariance[np.diag_indices(width)] += 1.0 - share
    return np.linalg.cholesky(covariance.astype(np.float32))


def lower_inverse(root: Square) -> Square:
    """The inverse of a lower triangular matrix."""
    inverse, _ = scipy.linalg.lapack.strtri(root, lower=True)
    return np.ascontiguousarray(inverse)


def transformed(rows: RowArray, transform: Square) -> RowArray:
    """The rows times the transpose of a matrix, which before any whitening is a diagonal one."""
    if np.count_nonzero(transform) == len(transform) == np.count_nonzero(transform.diagonal()):
        return rows * transform.diagonal()
    return product(rows, transform.T)


def variance_terms(
    z: Sparse,
    dots: Float32[np.ndarray, " entry"],
    lengths: Float32[np.ndarray, " image"],
    mass: PerClass,
    squares: PerClass,
) -> tuple[float, float]:
    """Sum of the squared distances of images to the mean of the others of their class, and weight.

    Parameters
    ----------
    z : sparse array of shape (image, class)
        Assignments of these images.
    dots : array of shape (entry,)
        y_i . S_k of the stored entries.
    lengths : array of shape (image,)
        Squared length of each image.
    mass, squares : array of shape (class,)
        Size of each class, and |S_k|^2.
    """
    image = np.repeat(np.arange(z.shape[0]), np.diff(z.indptr))
    kept = np.flatnonzero(mass[z.indices] - z.data > FEWEST_OTHERS)
    k, share = z.indices[kept], z.data[kept].astype(np.float64)
    n, length = mass[k] - share, lengths[image[kept]].astype(np.float64)
    dot = dots[kept].astype(np.float64)
    cross = dot - share * length
    square = squares[k] - 2.0 * share * dot + share**2 * length
    distance = length - 2.0 * cross / n + square / n**2
    return float((share * distance * n / (n + 1.0)).sum()), float(share.sum())


def variance_within(weighted: float, weight: float, total: float) -> float:
    """The variance within classes from the summed `variance_terms`, bounded by the `total`."""
    within = total if weight < 1e-2 else weighted / weight
    return min(max(within, LEAST_WITHIN * total), MOST_WITHIN * total)


def row_squares(rows: RowArray) -> Float32[np.ndarray, " image"]:
    """Squared length of each row."""
    return np.einsum("ij,ij->i", rows, rows)


def solve_rows(
    root: Square, rows: Float[np.ndarray, "row feature"]
) -> Float[np.ndarray, "row feature"]:
    """C^-1 y for each row y."""
    solved = scipy.linalg.solve_triangular(root, rows.T, lower=True, overwrite_b=False)
    return np.ascontiguousarray(solved.T)
