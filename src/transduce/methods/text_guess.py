"""The encoder's own guess softmax(scale cos), from the class embeddings of a task."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float

from transduce.errors import InvalidTask
from transduce.methods.method import Method, RowProbabilities, Rows
from transduce.methods.prototypes import directions
from transduce.simplex.probabilities import blocks, softmax
from transduce.task import Task


def class_embeddings_of(method: Method, task: Task) -> Float[np.ndarray, "class feature"]:
    """Return the class embeddings of a task; refuse ones of another encoder than the images."""
    if task.class_embeddings is None:
        raise InvalidTask(
            f"Expected class_embeddings for {method.name}, found none; build the task with "
            "Task.from_embeddings, which keeps them."
        )
    if task.class_embeddings.shape[1] != task.query.shape[1]:
        raise InvalidTask(
            f"Expected class_embeddings with {task.query.shape[1]} columns like the images, "
            f"found {task.class_embeddings.shape[1]}; were they made by the same encoder?"
        )
    return task.class_embeddings


def unit_embeddings(
    method: Method, task: Task
) -> tuple[Float[np.ndarray, "query feature"], Float[np.ndarray, "class feature"]]:
    """Return queries and class embeddings as unit vectors, in the precision of the queries."""
    classes = class_embeddings_of(method, task)
    return directions(task.query), directions(classes.astype(task.query.dtype, copy=False))


def log_text_guess(
    unit: Float[np.ndarray, "row feature"],
    classes: Float[np.ndarray, "class feature"],
    scale: float,
) -> Float[np.ndarray, "row class"]:
    """Return log softmax(scale cos) of unit rows and unit class embeddings."""
    scores = unit @ classes.T
    scores *= scale
    for rows in blocks(*scores.shape):
        part = scores[rows]
        part -= part.max(1, keepdims=True)
        part -= np.log(np.exp(part).sum(1, keepdims=True))
    return scores


class UnitDensity(Protocol):
    """Densities of the classes on unit vectors."""

    def log_density(self, unit: Rows) -> RowProbabilities:
        """Log densities (row, class), up to a constant of each row."""
        ...


@dataclass(frozen=True)
class TextAndDensity:
    """Classifier of new images: the text and the fitted densities, without neighbors."""

    classes: Float[np.ndarray, "class feature"]
    density: UnitDensity
    text_scale: float
    likelihood_weight: float
    text_weight: float = 1.0

    def probabilities(self, rows: Rows) -> RowProbabilities:
        """Class probabilities (row, class) of new images, each by itself."""
        unit = directions(rows)
        text = self.text_weight * log_text_guess(unit, self.classes, self.text_scale)
        return softmax(text + self.likelihood_weight * self.density.log_density(unit))
