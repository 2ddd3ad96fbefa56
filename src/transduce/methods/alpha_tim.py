"""alpha-TIM: prototypes that maximize an alpha-mutual information of queries and labels.

Veilleux, Boudiaf, Piantanida, Ben Ayed, "Realistic Evaluation of Transductive Few-Shot Learning",
NeurIPS 2021. With p_n = softmax(-T/2 ||x_n - prototype||^2) and Tsallis' alpha-entropy
H(p) = (1 - sum_k p_k^alpha) / (alpha - 1), it minimizes over the prototypes

    L  =  mean_support -log p_n[label]  -  H(mean_query p)  +  mean_query H(p_n)

from the means of the shots, by Adam. The gradient is closed form, so there is no torch here.
alpha = 1 would be Shannon's entropy and TIM, which wants every class equally often; a larger alpha
forgives imbalance. Use it when most classes are in the batch; it spreads the queries over all
classes, and it is the slowest of its peers (a thousand passes over support and query).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from transduce.errors import InvalidSetting
from transduce.methods.adam import Adam
from transduce.methods.method import Support, accept, warn_unless_converged
from transduce.methods.prototypes import (
    PrototypeClassifier,
    class_means,
    squared_distances,
    support_of,
)
from transduce.simplex.probabilities import blocks
from transduce.simplex.threads import one_blas_thread, over_slices
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import positive, whole_from_one

_Pull = Float[np.ndarray, "..."]
SETTLED = 1e-3  # relative change of the objective over the last tenth of the steps


@final
@dataclass(frozen=True, kw_only=True)
class AlphaTIM:
    """Label a batch jointly by prototypes that maximize a mutual information.

    Few-shot only. For batches that hold most of the classes: it spreads the queries over all.

    Parameters
    ----------
    alpha : float, default=7.0
        Of the Tsallis entropies, above 1. Larger values forgive unbalanced batches. Worth tuning
        on validation images (`AlphaTIM.grid`); the default is the largest of the published grid.
    temperature : float, default=15.0
        T of softmax(-T/2 ||x - prototype||^2). Larger: harder assignments. 15 as published.
    learning_rate : float, default=1e-4
        Of Adam; 1e-4 as published. Raise it, or `max_iter`, if the objective still falls.
    max_iter : int, default=1000
        Steps, always all of them; time is in proportion to it.

    Examples
    --------
    >>> from transduce import AlphaTIM, Task
    >>> images, shots = [[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]]
    >>> task = Task.from_embeddings(images, shots, support=shots, support_labels=[0, 1])
    >>> AlphaTIM(max_iter=200).predict(task).labels.tolist()
    [0, 1]
    """

    name: ClassVar[str] = "alpha-tim"
    spaces: ClassVar[tuple[Space, ...]] = ("probability", "embedding")
    support: ClassVar[Support] = "needed"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "alpha": (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0)
    }

    alpha: float = 7.0
    temperature: float = 15.0
    learning_rate: float = 1e-4
    max_iter: int = 1000

    def __post_init__(self) -> None:
        positive("temperature", self.temperature)
        positive("learning_rate", self.learning_rate)
        whole_from_one("max_iter", self.max_iter)
        if not 1.0 < self.alpha < np.inf:
            raise InvalidSetting(f"Expected alpha above 1, found {self.alpha!r}.")

    def predict(self, task: Task) -> Prediction:
        """Label all queries jointly; warn if the objective still moved in the last steps."""
        accept(self, task)
        shots, labels = support_of(task)
        shots = shots.astype(task.query.dtype, copy=False)
        loss = AlphaTIMLoss(shots, labels, task.query, self.alpha, self.temperature)
        prototypes = class_means(shots, labels, task.n_classes)
        adam = Adam()
        objective: list[float] = []
        with one_blas_thread(0):  # blocks of shots go over threads, each with its own products
            for _ in range(self.max_iter):
                value, gradient = loss.value_and_gradient(prototypes)
                objective.append(value)
                prototypes = adam.step(prototypes, gradient, self.learning_rate)
        model = PrototypeClassifier(squared_distances, prototypes, -self.temperature / 2)
        trace = Trace(tuple(objective), self.max_iter, _settled(objective))
        warn_unless_converged(self, trace, "raise max_iter or learning_rate")
        return Prediction(model.probabilities(task.query), trace, model=model)


class AlphaTIMLoss:
    """The objective and its gradient in the prototypes, for one task."""

    def __init__(
        self,
        support: Float[np.ndarray, "shot feature"],
        labels: Int[np.ndarray, " shot"],
        query: Float[np.ndarray, "query feature"],
        alpha: float,
        temperature: float,
    ) -> None:
        self._support, self._labels, self._query = support, labels, query
        self._alpha, self._temperature = alpha, temperature

    def value_and_gradient(
        self, prototypes: Float[np.ndarray, "class feature"]
    ) -> tuple[float, Float[np.ndarray, "class feature"]]:
        """Return the objective at the prototypes and its gradient (class, feature)."""
        # The ||x||^2 of the distance is the same for every class and drops out of the softmax.
        halves = np.einsum("kd,kd->k", prototypes, prototypes) / 2

        def of_shots(rows: slice) -> tuple[float, _Pull, _Pull]:
            shots = self._support[rows]
            scores = self._probabilities(shots, prototypes, halves)
            of_label = np.arange(len(shots)), self._labels[rows]
            likelihood = np.maximum(scores[of_label], np.finfo(scores.dtype).tiny)
            scores[of_label] -= 1.0
            scores /= len(self._support)
            return -float(np.log(likelihood).sum()), scores.T @ shots, scores.sum(0)

        def assigned(rows: slice) -> None:
            query[rows] = self._probabilities(self._query[rows], prototypes, halves)

        def of_queries(rows: slice) -> tuple[float, _Pull, _Pull]:
            part = query[rows]
            part *= slopes[rows] - np.einsum("nk,nk->n", part, slopes[rows])[:, np.newaxis]
            return 0.0, part.T @ self._query[rows], part.sum(0)

        # The products are all the time there is: each block of rows has its own in its own
        # thread, and its softmax is taken while the block is in the cache.
        query = np.empty((len(self._query), len(prototypes)), prototypes.dtype)
        query_blocks = blocks(*query.shape)
        over_slices(assigned, query_blocks)
        entropies, slopes = self._entropies(query)
        parts = over_slices(of_shots, blocks(len(self._support), len(prototypes)))
        parts += over_slices(of_queries, query_blocks)
        gradient, mass = np.zeros_like(prototypes), np.zeros_like(halves)
        for _, pull, weights in parts:
            gradient += pull
            mass += weights
        gradient -= mass[:, np.newaxis] * prototypes
        gradient *= self._temperature
        cross_entropy = sum(loss for loss, _, _ in parts) / len(self._support)
        return cross_entropy + entropies, gradient

    def _probabilities(
        self,
        rows: Float[np.ndarray, "row feature"],
        prototypes: Float[np.ndarray, "class feature"],
        halves: Float[np.ndarray, " class"],
    ) -> Float[np.ndarray, "row class"]:
        """softmax(-T/2 ||x - prototype||^2) (row, class)."""
        scores = rows @ prototypes.T
        scores -= halves
        scores *= self._temperature
        scores -= scores.max(1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(1, keepdims=True)
        return scores

    def _entropies(
        self, query: Float[np.ndarray, "query class"]
    ) -> tuple[float, Float[np.ndarray, "query class"]]:
        """Mean entropy less entropy of the mean, and its derivative in each probability."""
        mean = query.mean(0)
        powers, mean_powers = query ** (self._alpha - 1), mean ** (self._alpha - 1)
        value = (mean_powers @ mean - np.einsum("nk,nk->", powers, query) / len(query)) / (
            self._alpha - 1
        )
        slopes = (mean_powers - powers) * (self._alpha / (self._alpha - 1) / len(query))
        return float(value), slopes


def _settled(objective: list[float]) -> bool:
    earlier = objective[-1 - max(1, len(objective) // 10)] if len(objective) > 1 else np.inf
    return bool(abs(earlier - objective[-1]) <= SETTLED * max(1.0, abs(objective[-1])))
