"""Comparing answers with the truth, and methods with each other on the same tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

Z95 = 1.959963984540054  # of the normal distribution: 95 % lie within
SIGNIFICANT = 0.05


def correct(labels: Int[np.ndarray, " query"], truth: Int[np.ndarray, " query"]) -> int:
    return int((labels == truth).sum())


def mean_per_class_recall(
    labels: Int[np.ndarray, " query"], truth: Int[np.ndarray, " query"]
) -> float:
    """Of each class present, the share that was found; the mean over these classes."""
    sizes = np.bincount(truth)
    hits = np.bincount(truth[labels == truth], minlength=len(sizes))
    present = sizes > 0
    return float(np.mean(hits[present] / sizes[present]))


def mean_and_interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean over tasks and half the width of its 95 % interval."""
    array = np.asarray(values, dtype=float)
    return float(array.mean()), Z95 * float(array.std(ddof=1)) / len(array) ** 0.5


@dataclass(frozen=True)
class Comparison:
    """How much better `first` is than `second` on the same tasks: paired, two-sided."""

    difference: float
    interval: float
    p_value: float
    wins: int
    losses: int

    @property
    def significant(self) -> bool:
        return self.p_value < SIGNIFICANT


def compare(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Student's paired test over tasks."""
    from scipy.special import stdtr  # here, because scipy is slow to import

    gaps = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    mean, interval = mean_and_interval(list(gaps))
    error = interval / Z95
    if error == 0.0:
        p_value = 1.0 if mean == 0.0 else 0.0
    else:
        p_value = float(2.0 * stdtr(len(gaps) - 1, -abs(mean) / error))
    return Comparison(mean, interval, p_value, int((gaps > 0).sum()), int((gaps < 0).sum()))
