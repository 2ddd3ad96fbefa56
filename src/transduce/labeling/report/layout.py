"""Positions in the plane for images: those that the encoder sees alike lie together.

t-SNE (van der Maaten & Hinton, 2008), exact, of at most 600 images; each further image is put
among those of them that it is most like. Seeded by its start, the first two principal components.
A second or two, with nothing but matrix products.
"""

import numpy as np
from jaxtyping import Float, Float32

from transduce.simplex.threads import one_blas_thread

MOST_PLACED = 600  # by t-SNE itself, which takes time with the square of their number
PERPLEXITY = 20.0
STEPS, EARLY = 260, 70
EXAGGERATION = 8.0
ALIKE = 4  # placed images that decide where another one goes

Positions = Float[np.ndarray, "image 2"]
Rows = Float32[np.ndarray, "image feature"]
Square = Float32[np.ndarray, "image image"]


def plane_positions(rows: Rows, seed: int = 0) -> Positions:
    """Return where to draw each image, within the unit square.

    Parameters
    ----------
    rows : array of shape (image, feature)
        Unit vectors.
    seed : int
        Decides which images are placed first, if there are many.
    """
    if len(rows) < 4:
        return np.linspace([0.3, 0.5], [0.7, 0.5], max(2, len(rows)))[: len(rows)]
    generator = np.random.default_rng(seed)
    first = np.arange(len(rows))
    if len(rows) > MOST_PLACED:
        first = np.sort(generator.choice(len(rows), MOST_PLACED, replace=False))
    with one_blas_thread(0):  # products this small take longer when they are shared out
        placed = _tsne(rows[first])
        if len(first) < len(rows):
            placed = _between(rows, first, placed, generator)
    return _within_square(placed)


def _tsne(rows: Rows) -> Positions:
    alike = _likeness(rows)
    positions = _principal(rows)
    moved, gains = np.zeros_like(positions), np.ones_like(positions)
    for step in range(STEPS):
        weights = alike * np.float32(EXAGGERATION) if step < EARLY else alike
        slope = _slope(positions, weights)
        gains = np.where(slope * moved < 0, gains + 0.2, np.maximum(0.05, gains * 0.8))
        moved = (0.5 if step < EARLY else 0.8) * moved - len(rows) / 8.0 * gains * slope
        positions = positions + moved
        positions -= positions.mean(0)
    return positions.astype(np.float64)


def _slope(
    positions: Float32[np.ndarray, "image 2"], alike: Square
) -> Float32[np.ndarray, "image 2"]:
    """Return the gradient of the Kullback-Leibler divergence, up to a factor."""
    square = (positions**2).sum(1)
    near = 1.0 / (1.0 + np.maximum(square[:, None] + square - 2.0 * positions @ positions.T, 0.0))
    np.fill_diagonal(near, 0.0)
    forces = (alike - near / near.sum()) * near
    return 4.0 * (forces.sum(1)[:, None] * positions - forces @ positions)


def _likeness(rows: Rows) -> Square:
    """Return the joint probabilities of pairs, each image with PERPLEXITY neighbors."""
    distance = np.maximum(2.0 - 2.0 * (rows @ rows.T), 0.0).astype(np.float64)
    np.fill_diagonal(distance, np.inf)
    distance -= distance.min(1, keepdims=True)
    wanted = np.log(min(PERPLEXITY, (len(rows) - 1) / 3.0))
    low, high = np.zeros(len(rows)), np.full(len(rows), np.inf)
    sharpness = np.full(len(rows), 10.0)
    for _ in range(40):
        shares = np.exp(-distance * sharpness[:, None])
        total = shares.sum(1)
        inner = np.where(np.isfinite(distance), distance, 0.0)
        entropy = np.log(total) + sharpness * (inner * shares).sum(1) / total
        wide = entropy > wanted
        low = np.where(wide, sharpness, low)
        high = np.where(wide, high, sharpness)
        sharpness = np.where(np.isinf(high), sharpness * 2.0, (low + np.minimum(high, 1e12)) / 2.0)
    shares /= shares.sum(1, keepdims=True)
    return ((shares + shares.T) / (2.0 * len(rows))).astype(np.float32)


def _principal(rows: Rows) -> Float32[np.ndarray, "image 2"]:
    """Return the first two principal components, small."""
    centered = rows - rows.mean(0)
    values, vectors = np.linalg.eigh(centered @ centered.T)
    positions = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 1e-12))
    # The sign of an eigenvector is arbitrary; one rule makes the picture repeatable.
    positions *= np.where(positions[np.abs(positions).argmax(0), [0, 1]] < 0, -1.0, 1.0)
    spread = max(float(positions[:, 0].std()), 1e-12)
    return (positions / spread * 1e-2).astype(np.float32)


def _between(
    rows: Rows, first: np.ndarray, placed: Positions, generator: np.random.Generator
) -> Positions:
    """Place all rows: the others near the placed ones that they are most like."""
    cosines = rows @ rows[first].T
    best = np.argpartition(-cosines, ALIKE - 1, axis=1)[:, :ALIKE]
    weights = np.exp(30.0 * (np.take_along_axis(cosines, best, 1) - 1.0)).astype(np.float64)
    weights /= weights.sum(1, keepdims=True)
    # The median of its likest, as it were: a mean would fall between two groups.
    nearest = placed[best[np.arange(len(rows)), weights.argmax(1)]]
    mean = (weights[:, :, None] * placed[best]).sum(1)
    close = ((mean - nearest) ** 2).sum(1) < placed.var(0).sum() / 50.0
    positions = np.where(close[:, None], mean, nearest)
    positions += generator.normal(0.0, 0.006 * np.ptp(placed, axis=0), positions.shape)
    positions[first] = placed
    return positions


def _within_square(positions: Positions) -> Positions:
    """Scale to the unit square; the farthest hundredth is brought in to the edge."""
    low, high = np.percentile(positions, [0.5, 99.5], axis=0)
    return np.clip((positions - low) / np.maximum(high - low, 1e-12), 0.0, 1.0) * 0.96 + 0.02
