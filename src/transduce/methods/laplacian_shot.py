"""LaplacianShot: nearest class means, smoothed over a graph of neighboring queries.

Ziko, Dolz, Granger, Ben Ayed, "Laplacian Regularized Few-Shot Learning", ICML 2020. On features of
unit length, with a_nk = ||x_n - mean of class k's shots||^2 and w_nm = 1 if m is one of the
nearest neighbors of n, it lowers

    E(y)  =  sum_nk a_nk y_nk  +  sum_nk y_nk log y_nk  -  weight sum_nm w_nm y_n . y_m

by y_n = softmax(-a_n + weight sum_m w_nm y_m), every query at once. That step is sure to
lower E only for a positive semi-definite w, which a neighbor graph is not: with a large weight
(9, on real features) it can swing between two states. A step that would raise E is therefore not
taken, and ends the iteration as not converged. Use it when images of a class lie close together
in the batch; class proportions do not matter to it, so it is safer than its peers on unbalanced
batches.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from transduce.methods.method import RowProbabilities, Rows, Support, accept, warn_unless_converged
from transduce.methods.neighbors import nearest_neighbors
from transduce.methods.prototypes import class_means, directions, squared_distances, support_of
from transduce.simplex.probabilities import softmax
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import at_least_zero, whole_from_one


@final
@dataclass(frozen=True, kw_only=True)
class LaplacianShot:
    """Label a batch jointly by class means, smoothed over a graph of neighboring queries.

    Few-shot only. Class proportions do not matter to it, so that it is safe on unbalanced batches.

    Parameters
    ----------
    weight : float, default=0.7
        How much neighbors count beside the class means, at least 0; 0 is nearest class mean.
        Worth tuning on validation images (`LaplacianShot.grid`).
    neighbors : int, default=2
        Neighbors of each query, not counting itself: the published 3 does count it.
    max_iter : int, default=20
        Iterations, at most; 20 as published.
    tolerance : float, default=1e-6
        Relative change of the energy below which it has converged.

    Examples
    --------
    >>> from transduce import LaplacianShot, Task
    >>> images, shots = [[0.9, 0.1], [0.8, 0.3], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]]
    >>> task = Task.from_embeddings(images, shots, support=shots, support_labels=[0, 1])
    >>> LaplacianShot(neighbors=1).predict(task).labels.tolist()
    [0, 0, 1]
    """

    name: ClassVar[str] = "laplacian-shot"
    spaces: ClassVar[tuple[Space, ...]] = ("probability", "embedding")
    support: ClassVar[Support] = "needed"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "weight": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
    }

    weight: float = 0.7
    neighbors: int = 2
    max_iter: int = 20
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        at_least_zero("weight", self.weight)
        at_least_zero("tolerance", self.tolerance)
        whole_from_one("neighbors", self.neighbors)
        whole_from_one("max_iter", self.max_iter)

    def predict(self, task: Task) -> Prediction:
        """Label all queries jointly; warn if the energy did not settle."""
        accept(self, task)
        shots, labels = support_of(task)
        support, query = directions(shots.astype(float)), directions(task.query.astype(float))
        prototypes = class_means(support, labels, task.n_classes)
        costs = squared_distances(query, prototypes)
        nearest = nearest_neighbors(query, query, self.neighbors, skip_self=True).indices
        assignments, energies, converged = self._minimize(costs, nearest)
        trace = Trace(tuple(energies), len(energies), converged)
        swings = len(energies) < self.max_iter  # the next step would have raised the energy
        warn_unless_converged(self, trace, "lower weight" if swings else "raise max_iter")
        return Prediction(
            probabilities=assignments.astype(task.query.dtype, copy=False),
            trace=trace,
            model=LaplacianModel(prototypes, query, assignments, self.weight, self.neighbors),
        )

    def _minimize(
        self,
        costs: Float[np.ndarray, "query class"],
        nearest: Int[np.ndarray, "query neighbor"],
    ) -> tuple[Float[np.ndarray, "query class"], list[float], bool]:
        assignments = softmax(-costs)
        votes = _votes(assignments, nearest)
        energies: list[float] = []
        for _ in range(self.max_iter):
            proposed = softmax(self.weight * votes - costs)
            votes = _votes(proposed, nearest)
            reached = _energy(proposed, costs, self.weight * votes)
            if energies and reached > energies[-1] + 1e-12 * abs(energies[-1]):
                return assignments, energies, False
            assignments = proposed
            energies.append(reached)
            if len(energies) > 1 and energies[-2] - reached <= self.tolerance * abs(energies[-2]):
                return assignments, energies, True
        return assignments, energies, False


@dataclass(frozen=True)
class LaplacianModel:
    """Classifier of new images: class means, smoothed by neighbors in the labeled batch."""

    prototypes: Float[np.ndarray, "class feature"]
    query: Float[np.ndarray, "query feature"]
    assignments: Float[np.ndarray, "query class"]
    weight: float
    neighbors: int

    def probabilities(self, rows: Rows) -> RowProbabilities:
        """Class probabilities (row, class) of new images, each by itself."""
        unit = directions(np.asarray(rows, dtype=float))
        nearest = nearest_neighbors(unit, self.query, self.neighbors, skip_self=False).indices
        costs = squared_distances(unit, self.prototypes)
        return softmax(self.weight * _votes(self.assignments, nearest) - costs)


def _votes(
    assignments: Float[np.ndarray, "other class"], nearest: Int[np.ndarray, "row neighbor"]
) -> Float[np.ndarray, "row class"]:
    votes = np.zeros((len(nearest), assignments.shape[1]))
    for column in nearest.T:  # few columns: this needs no (row, neighbor, class) array
        votes += assignments[column]
    return votes


def _energy(
    assignments: Float[np.ndarray, "query class"],
    costs: Float[np.ndarray, "query class"],
    weighted_votes: Float[np.ndarray, "query class"],
) -> float:
    logarithms = np.log(np.maximum(assignments, np.finfo(float).tiny))
    return float((assignments * (costs + logarithms - weighted_votes)).sum())
