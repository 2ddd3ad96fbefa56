"""Probabilities from scores: softmax, and softmax(T cos)."""

import numpy as np
from jaxtyping import Float

BLOCK_ENTRIES = 1 << 20  # how many entries of a wide array are worked on at a time (8 MB)


def softmax(
    scores: Float[np.ndarray, "row class"],
) -> Float[np.ndarray, "row class"]:
    """Return exp(scores) with each row scaled to sum to one, safe for scores of any size."""
    exponentials = np.exp(scores - scores.max(1, keepdims=True))
    exponentials /= exponentials.sum(1, keepdims=True)
    return exponentials


def blocks(rows: int, width: int) -> list[slice]:
    """Return slices over `rows` such that each block of a (rows, width) array has bounded size."""
    step = max(1, BLOCK_ENTRIES // max(width, 1))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def zero_shot_probabilities(
    images: Float[np.ndarray, "image feature"],
    classes: Float[np.ndarray, "class feature"],
    temperature: float,
) -> Float[np.ndarray, "image class"]:
    """Return z = softmax(T cos(image, class)) (image, class) of unit vectors (equation 2).

    Computed in float64 block by block, returned in the precision of `images`.
    """
    probabilities = np.empty((len(images), len(classes)), dtype=images.dtype)
    directions = np.asarray(classes, dtype=np.float64).T
    for rows in blocks(len(images), max(len(classes), images.shape[1])):
        scores = np.asarray(images[rows], dtype=np.float64) @ directions
        scores *= temperature  # overwritten from here on: new arrays of this size cost page faults
        scores -= scores.max(1, keepdims=True)
        np.exp(scores, out=scores)
        sums = scores.sum(1, keepdims=True)
        np.divide(scores, sums, out=probabilities[rows], casting="same_kind")
    return probabilities
