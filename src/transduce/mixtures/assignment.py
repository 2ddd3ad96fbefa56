"""The E-step: assignments from scores of every class, soft (a softmax) or hard (one-hot)."""

import numpy as np
from jaxtyping import Float, Int

NEGLIGIBLE = 1e-30  # responsibilities below this are set to zero, so that classes can become empty
PROPORTION_FLOOR = 1e-15


def assign(
    scores: Float[np.ndarray, "query class"], best: Int[np.ndarray, " query"], hard: bool
) -> tuple[Float[np.ndarray, "query class"], float]:
    """Return the assignments that maximize sum u (scores) - barrier(u), and the maximum.

    The barrier sum u log u makes them a softmax and the maximum a log-sum-exp; without it they
    are one-hot and the maximum is the largest score, at the class `best`. `scores` is overwritten.
    """
    every = np.arange(len(scores))
    peaks = scores[every, best]
    if hard:
        scores.fill(0.0)
        scores[every, best] = 1.0
        return scores, float(peaks.sum())
    scores -= peaks[:, np.newaxis]
    np.exp(scores, out=scores)
    sums = scores.sum(1)
    scores /= sums[:, np.newaxis]
    scores[scores < NEGLIGIBLE] = 0.0
    return scores, float(peaks.sum() + np.log(sums).sum())


def log_proportions(mass: Float[np.ndarray, " class"], count: int) -> Float[np.ndarray, " class"]:
    """Return log pi (class,), where pi is the share of the queries in each class."""
    return np.log(mass / count + PROPORTION_FLOOR)


def partition_complexity(mass: Float[np.ndarray, " class"], count: int) -> float:
    """Return Psi = - sum pi log pi (equation 7): small when few classes hold the queries."""
    pi = mass[mass > 0.0] / count
    return float(-(pi * np.log(pi)).sum())
