"""One vector for each class: the mean of its shots, and how far the others are from it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from transduce.simplex.grouping import group_sums
from transduce.simplex.probabilities import softmax
from transduce.task import Task


def support_of(
    task: Task,
) -> tuple[Float[np.ndarray, "shot feature"], Int[np.ndarray, " shot"]]:
    """The support of a task that was accepted by a method that needs one."""
    assert task.support is not None
    assert task.support_labels is not None
    return task.support, task.support_labels


def directions(rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
    """Rows scaled to unit length; a row of zeros has no direction and stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Float[np.ndarray, "row feature"] = rows / np.where(lengths > 0, lengths, 1.0)
    return unit


def class_means(
    rows: Float[np.ndarray, "shot feature"], labels: Int[np.ndarray, " shot"], n_classes: int
) -> Float[np.ndarray, "class feature"]:
    """The mean of each class; every class has a row."""
    sums = group_sums(rows, labels, n_classes, lambda part: part)
    means: Float[np.ndarray, "class feature"]
    means = sums / np.bincount(labels, minlength=n_classes)[:, np.newaxis]
    return means.astype(rows.dtype, copy=False)


def squared_distances(
    rows: Float[np.ndarray, "row feature"], others: Float[np.ndarray, "other feature"]
) -> Float[np.ndarray, "row other"]:
    """||row - other||^2 by one matrix product; rounding never makes one negative."""
    lengths = np.einsum("nd,nd->n", rows, rows)[:, np.newaxis]
    others_lengths = np.einsum("kd,kd->k", others, others)
    squared: Float[np.ndarray, "row other"]
    squared = np.maximum(lengths + others_lengths - 2.0 * (rows @ others.T), 0.0)
    return squared


@dataclass(frozen=True)
class CosineClassifier:
    """softmax(scale * cos(row, prototype)), one row at a time."""

    prototypes: Float[np.ndarray, "class feature"]
    scale: float

    def probabilities(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row class"]:
        return softmax(self.scale * (directions(rows) @ directions(self.prototypes).T))
