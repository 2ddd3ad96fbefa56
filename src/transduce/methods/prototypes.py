"""Prototypes: the mean vector of each class, and distances from it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from transduce.methods.method import RowProbabilities, Rows
from transduce.simplex.grouping import group_sums
from transduce.simplex.probabilities import softmax
from transduce.task import Task


def support_of(
    task: Task,
) -> tuple[Float[np.ndarray, "shot feature"], Int[np.ndarray, " shot"]]:
    """Return shots and labels of a task that was accepted by a method that needs them."""
    assert task.support is not None
    assert task.support_labels is not None
    return task.support, task.support_labels


def directions(rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
    """Return rows scaled to unit length; a row of zeros has no direction and stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def class_means(
    rows: Float[np.ndarray, "shot feature"], labels: Int[np.ndarray, " shot"], n_classes: int
) -> Float[np.ndarray, "class feature"]:
    """Return the mean of each class (class, feature); every class must have a row."""
    sums = group_sums(rows, labels, n_classes, lambda part: part)
    means = sums / np.bincount(labels, minlength=n_classes)[:, np.newaxis]
    return means.astype(rows.dtype, copy=False)


def squared_distances(
    rows: Float[np.ndarray, "row feature"], others: Float[np.ndarray, "other feature"]
) -> Float[np.ndarray, "row other"]:
    """Return ||row - other||^2 (row, other) by one matrix product, never negative."""
    lengths = np.einsum("nd,nd->n", rows, rows)[:, np.newaxis]
    others_lengths = np.einsum("kd,kd->k", others, others)
    return np.maximum(lengths + others_lengths - 2.0 * (rows @ others.T), 0.0)


def cosines(
    rows: Float[np.ndarray, "row feature"], others: Float[np.ndarray, "other feature"]
) -> Float[np.ndarray, "row other"]:
    """Return the cosines (row, other) of the angles between rows and others."""
    return directions(rows) @ directions(others).T


@dataclass(frozen=True)
class PrototypeClassifier:
    """Classifier of rows one at a time: softmax(scale * comparison(row, prototype))."""

    comparison: Callable[[np.ndarray, np.ndarray], np.ndarray]
    prototypes: Float[np.ndarray, "class feature"]
    scale: float

    def probabilities(self, rows: Rows) -> RowProbabilities:
        """Class probabilities (row, class) of new images, each by itself."""
        return softmax(self.scale * self.comparison(rows, self.prototypes))
