"""Assignments smoothed over a graph of neighbors, by turns with the classes they describe."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from transduce.methods.method import Method, warn_unless_converged
from transduce.methods.neighbors import mutual_graph
from transduce.methods.text_guess import (
    TextAndDensity,
    UnitDensity,
    log_text_guess,
    unit_embeddings,
)
from transduce.simplex.probabilities import blocks
from transduce.simplex.threads import one_blas_thread, over_rows
from transduce.task import Prediction, Task, Trace


class SmoothingMethod(Method, Protocol):
    """The settings that TransCLIP and StatA share."""

    @property
    def text_scale(self) -> float:
        """What multiplies cosines in the encoder's guess."""
        ...

    @property
    def likelihood_weight(self) -> float:
        """What multiplies the log density of the images."""
        ...

    @property
    def neighbors(self) -> int:
        """Neighbors of each image in the graph."""
        ...

    @property
    def max_iter(self) -> int:
        """Number of turns."""
        ...

    @property
    def inner_iter(self) -> int:
        """Smoothing steps in a turn."""
        ...


@dataclass(frozen=True)
class GuessedImages:
    """Unit images and class embeddings, and the encoder's guess of each image."""

    query: Float[np.ndarray, "query feature"]
    classes: Float[np.ndarray, "class feature"]
    log_guess: Float[np.ndarray, "query class"]
    guess: Float[np.ndarray, "query class"]  # lost once smoothing starts


class FittedClasses(Protocol):
    """Classes fitted by turns with assignments: TransCLIP's and StatA's."""

    @property
    def density(self) -> UnitDensity:
        """The classes as densities, for images that come later."""
        ...

    def refit(
        self, assignments: Float[np.ndarray, "query class"], labels: Int[np.ndarray, " query"]
    ) -> None:
        """Fit the classes to assignments (query, class), whose largest entries are `labels`."""
        ...

    def scores(self) -> Float[np.ndarray, "query class"]:
        """Scores of the queries under the classes, without their neighbors (query, class)."""
        ...

    def penalty(self) -> float:
        """The part of the objective that depends on the classes alone."""
        ...


def label_by_turns(
    method: SmoothingMethod,
    task: Task,
    start: Callable[[GuessedImages], FittedClasses],
    text_weight: float = 1.0,
) -> Prediction:
    """Label all queries jointly from the classes of `start`; warn if labels have not settled.

    Parameters
    ----------
    method : SmoothingMethod
        Whose settings hold.
    task : Task
        What to label; the method has accepted it.
    start : callable
        The classes to begin with.
    text_weight : float, default=1.0
        How much the encoder's guess counts for images that come later.
    """
    query, classes = unit_embeddings(method, task)
    with one_blas_thread(query.size * len(classes)):
        log_guess = log_text_guess(query, classes, method.text_scale)
        graph = mutual_graph(query, method.neighbors)
        images = GuessedImages(query, classes, log_guess, np.exp(log_guess))
        fitted = start(images)
        assignments, trace = alternate(
            fitted, images.guess, graph, max_iter=method.max_iter, inner_iter=method.inner_iter
        )
    warn_unless_converged(method, trace)
    model = TextAndDensity(
        classes, fitted.density, method.text_scale, method.likelihood_weight, text_weight
    )
    return Prediction(probabilities=assignments, trace=trace, model=model)


def alternate(
    classes: FittedClasses,
    assignments: Float[np.ndarray, "query class"],
    graph: csr_array,
    *,
    max_iter: int,
    inner_iter: int,
) -> tuple[Float[np.ndarray, "query class"], Trace]:
    """Smooth assignments and fit classes by turns; converged if the last turn changed no label.

    Parameters
    ----------
    classes : FittedClasses
        The classes of the start; they are those of the last turn afterwards.
    assignments : array of shape (query, class)
        Where smoothing starts. Serves as working space: its content is lost.
    graph : sparse array of shape (query, query)
        What the assignments of other queries add to the scores of a query.
    max_iter : int
        Turns.
    inner_iter : int
        Smoothing steps in a turn.
    """
    objective: list[float] = []
    labels, changed = assignments.argmax(1), True
    for iteration in range(max_iter + 1):
        if iteration:
            classes.refit(assignments, labels)
        scores = classes.scores()
        assignments = smooth_assignments(scores, graph, assignments, inner_iter)
        previous, labels = labels, assignments.argmax(1)
        changed = bool((labels != previous).any())
        if iteration:
            energy = smoothing_energy(scores, graph, assignments)
            objective.append(energy + classes.penalty())
    return assignments, Trace(tuple(objective), max_iter, not changed)


def smooth_assignments(
    scores: Float[np.ndarray, "query class"],
    graph: csr_array,
    assignments: Float[np.ndarray, "query class"],
    steps: int,
) -> Float[np.ndarray, "query class"]:
    """Repeat z = softmax(scores + graph z) from z = `assignments`, all rows at once.

    `assignments` serves as working space: its content is lost.
    """
    current, following = assignments, np.empty_like(assignments)
    for _ in range(steps):
        _smooth_once(scores, graph, current, following)
        current, following = following, current
    return current


def _smooth_once(
    scores: Float[np.ndarray, "query class"],
    graph: csr_array,
    current: Float[np.ndarray, "query class"],
    following: Float[np.ndarray, "query class"],
) -> None:
    def work(piece: slice) -> None:
        for part in blocks(piece.stop - piece.start, 4 * scores.shape[1]):
            rows = slice(piece.start + part.start, piece.start + part.stop)
            exponents = graph[rows] @ current
            exponents += scores[rows]
            exponents -= exponents.max(1, keepdims=True)
            np.exp(exponents, out=exponents)
            np.divide(exponents, exponents.sum(1, keepdims=True), out=following[rows])

    over_rows(work, *scores.shape)


def smoothing_energy(
    scores: Float[np.ndarray, "query class"],
    graph: csr_array,
    assignments: Float[np.ndarray, "query class"],
) -> float:
    """Return sum z log z - sum z scores - 1/2 sum z (graph z), of which z is a stationary point."""
    energy = 0.0
    for rows in blocks(*scores.shape):
        part = assignments[rows]
        terms = np.log(np.maximum(part, np.finfo(part.dtype).tiny))
        terms -= scores[rows]
        terms -= 0.5 * (graph[rows] @ assignments)
        energy += float(np.vdot(part, terms))
    return energy
