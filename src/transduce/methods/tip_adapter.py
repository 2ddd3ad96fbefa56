"""Tip-Adapter and Tip-Adapter-F: zero-shot CLIP plus a cache of labeled shots.

Zhang et al., "Tip-Adapter: Training-free Adaption of CLIP for Few-shot Classification", ECCV 2022.
With unit embeddings of a query x, the classes c_k and the shots s_j of class y_j,

    logits_k  =  scale cos(x, c_k)  +  residual_ratio sum_{j: y_j = k} exp(-sharpness (1 - x . s_j))

Tip-Adapter-F starts from there and trains the keys s_j by the cross-entropy of the shots (AdamW, a
cosine schedule); its gradient is closed form. The published training re-crops the shots in every
epoch; a task holds embeddings, so here each shot is seen as it is.
Use them for single images or streams, and with many shots: an answer never depends on the rest
of the batch, and never profits from it. Both ratios want tuning on validation images.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import cos, pi
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from transduce.methods.adam import Adam
from transduce.methods.method import RowProbabilities, Rows, Support, accept
from transduce.methods.prototypes import directions, support_of
from transduce.methods.text_guess import class_embeddings_of
from transduce.simplex.probabilities import blocks, softmax
from transduce.simplex.threads import one_blas_thread, over_slices
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import at_least_zero, positive, whole_from_one

KEY_BLOCKS = 8  # that threads share


@dataclass(frozen=True)
class CacheClassifier:
    """Tip-Adapter classifier with fixed cache keys, which are in order of their classes."""

    classes: Float[np.ndarray, "class feature"]
    keys: Float[np.ndarray, "shot feature"]
    labels: Int[np.ndarray, " shot"]
    residual_ratio: float
    sharpness: float
    scale: float

    def probabilities(self, rows: Rows) -> RowProbabilities:
        """Class probabilities (row, class) of embeddings, each by itself."""
        probabilities = np.empty((len(rows), len(self.classes)), dtype=self.keys.dtype)
        for block in blocks(len(rows), len(self.keys)):
            scores, _ = self._scores(directions(rows[block]))
            probabilities[block] = softmax(scores.T)
        return probabilities

    def loss_and_gradient(
        self, unit: Float[np.ndarray, "row feature"], labels: Int[np.ndarray, " row"]
    ) -> tuple[float, Float[np.ndarray, "shot feature"]]:
        """Return the mean cross-entropy of labeled unit rows and its gradient in the keys."""
        scores, affinities = self._scores(unit)
        scores -= scores.max(0)
        np.exp(scores, out=scores)
        scores /= scores.sum(0)
        right = labels, np.arange(len(unit))
        loss = -float(np.log(np.maximum(scores[right], np.finfo(scores.dtype).tiny)).mean())
        scores[right] -= 1.0
        scores *= self.residual_ratio * self.sharpness / len(unit)
        gradient = np.empty_like(self.keys)

        def work(keys: slice) -> None:
            affinities[keys] *= scores[self.labels[keys]]
            np.matmul(affinities[keys], unit, out=gradient[keys])

        over_slices(work, self._key_blocks())
        return loss, gradient

    def _scores(
        self, unit: Float[np.ndarray, "row feature"]
    ) -> tuple[Float[np.ndarray, "class row"], Float[np.ndarray, "shot row"]]:
        """Return the logits (class, row) of unit rows, and their affinities (shot, row).

        Rows are the columns: the shots of a class are summed as whole vectors then, without a
        (shot, class) matrix.
        """
        affinities = np.empty((len(self.keys), len(unit)), np.result_type(self.keys, unit))
        scores = self.scale * (self.classes @ unit.T)

        def work(keys: slice) -> None:
            part = affinities[keys]
            np.matmul(self.keys[keys], unit.T, out=part)
            part -= 1.0
            part *= self.sharpness
            np.exp(part, out=part)
            present, first = np.unique(self.labels[keys], return_index=True)
            scores[present] += self.residual_ratio * np.add.reduceat(part, first)

        over_slices(work, self._key_blocks())
        return scores, affinities

    def _key_blocks(self) -> list[slice]:
        """Blocks of keys for threads; no class is in two of them."""
        ends = np.searchsorted(self.labels, np.arange(1, len(self.classes) + 1))
        count = max(1, min(KEY_BLOCKS, len(self.keys) // 256))
        bounds = sorted({0, *ends[np.arange(1, count + 1) * len(ends) // count - 1].tolist()})
        return [slice(start, stop) for start, stop in pairwise(bounds)]


@dataclass(frozen=True, kw_only=True)
class _CacheMethod:
    """What both methods share; `TipAdapter` documents the settings."""

    name: ClassVar[str]
    spaces: ClassVar[tuple[Space, ...]] = ("embedding",)
    support: ClassVar[Support] = "needed"
    inductive: ClassVar[bool] = True
    # The published search covers the same ranges in 20 x 200 steps.
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "residual_ratio": (0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
        "sharpness": (0.1, 1.0, 2.5, 4.0, 5.5, 7.0),
    }

    residual_ratio: float = 1.0
    sharpness: float = 5.5
    scale: float = 100.0

    def __post_init__(self) -> None:
        at_least_zero("residual_ratio", self.residual_ratio)
        positive("sharpness", self.sharpness)
        positive("scale", self.scale)


@final
@dataclass(frozen=True, kw_only=True)
class TipAdapter(_CacheMethod):
    """Label images one by one from class embeddings and a cache of labeled shots; no training.

    Parameters
    ----------
    residual_ratio : float, default=1.0
        How much the shots count beside the class embeddings, at least 0; 0 is zero-shot. Worth
        tuning on validation images (`TipAdapter.grid`).
    sharpness : float, default=5.5
        How fast a shot's influence falls with its distance. Larger: only the nearest shots
        count. Tuned together with `residual_ratio`; 5.5 as published.
    scale : float, default=100.0
        What multiplies cosines with the class embeddings: CLIP's learned logit scale.

    Examples
    --------
    >>> from transduce import Task, TipAdapter
    >>> images, shots = [[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]]
    >>> task = Task.from_embeddings(
    ...     images, shots, support=shots, support_labels=[0, 1], space="embedding"
    ... )
    >>> TipAdapter().predict(task).labels.tolist()
    [0, 1]
    """

    name = "tip-adapter"

    def predict(self, task: Task) -> Prediction:
        """Label every query by itself, with the shots as they are."""
        return _answer(_cache(self, task), task, Trace(objective=(), iterations=0, converged=True))


@final
@dataclass(frozen=True, kw_only=True)
class TipAdapterF(_CacheMethod):
    """Label images one by one from class embeddings and a cache whose keys are trained.

    `TipAdapter` with the shots' embeddings fine-tuned by AdamW on their own labels.

    Parameters
    ----------
    residual_ratio : float, default=1.0
        Weight of the shots beside the class embeddings, as in `TipAdapter`. Worth tuning.
    sharpness : float, default=5.5
        How fast the weight falls with distance, as there. Worth tuning.
    scale : float, default=100.0
        CLIP's logit scale.
    epochs : int, default=20
        Passes over the shots; 20 as published.
    learning_rate : float, default=1e-3
        Rate of the first step; a cosine schedule brings it to zero.
    batch_size : int, default=256
        Shots per step.
    seed : int, default=0
        Of the order of the shots.

    Examples
    --------
    >>> from transduce import METHODS, Task
    >>> rows, labels = [[1.0, 0.0], [0.0, 1.0]], [0, 1]
    >>> task = Task.from_embeddings(
    ...     rows, rows, support=rows, support_labels=labels, space="embedding"
    ... )
    >>> METHODS["tip-adapter-f"](epochs=5).predict(task).labels.tolist()
    [0, 1]
    """

    name = "tip-adapter-f"

    epochs: int = 20
    learning_rate: float = 1e-3
    batch_size: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_from_one("epochs", self.epochs)
        whole_from_one("batch_size", self.batch_size)
        positive("learning_rate", self.learning_rate)

    def predict(self, task: Task) -> Prediction:
        """Train the keys on the support, then label every query by itself."""
        cache = _cache(self, task)
        with one_blas_thread(0):  # blocks of keys go over threads, each with its own products
            model, losses = self._train(cache, *_shots(task))
        # A fixed budget, as published: it ends where the schedule has brought the rate to zero.
        trace = Trace(tuple(losses), self.epochs, converged=True)
        return _answer(model, task, trace)

    def _train(
        self,
        model: CacheClassifier,
        shots: Float[np.ndarray, "shot feature"],
        labels: Int[np.ndarray, " shot"],
    ) -> tuple[CacheClassifier, list[float]]:
        """The model with trained keys, and the mean loss of the shots in each epoch."""
        generator = np.random.default_rng(self.seed)
        adam = Adam(epsilon=1e-4, weight_decay=0.01)
        batches = -(-len(shots) // self.batch_size)
        losses: list[float] = []
        for epoch in range(self.epochs):
            order = generator.permutation(len(shots))
            total = 0.0
            for batch in range(batches):
                rows = order[batch * self.batch_size : (batch + 1) * self.batch_size]
                progress = (epoch * batches + batch) / (self.epochs * batches)
                rate = self.learning_rate * (1 + cos(pi * progress)) / 2
                loss, gradient = model.loss_and_gradient(shots[rows], labels[rows])
                model = replace(model, keys=adam.step(model.keys, gradient, rate))
                total += loss * len(rows)
            losses.append(total / len(shots))
        return model, losses


def _shots(
    task: Task,
) -> tuple[Float[np.ndarray, "shot feature"], Int[np.ndarray, " shot"]]:
    """The shots as unit vectors in the precision of the queries, and their labels."""
    shots, labels = support_of(task)
    return directions(shots.astype(task.query.dtype, copy=False)), labels


def _cache(method: TipAdapter | TipAdapterF, task: Task) -> CacheClassifier:
    accept(method, task)
    shots, labels = _shots(task)
    by_class = np.argsort(labels, kind="stable")
    return CacheClassifier(
        directions(class_embeddings_of(method, task).astype(task.query.dtype, copy=False)),
        shots[by_class],
        labels[by_class],
        method.residual_ratio,
        method.sharpness,
        method.scale,
    )


def _answer(model: CacheClassifier, task: Task, trace: Trace) -> Prediction:
    probabilities = model.probabilities(task.query).astype(task.query.dtype, copy=False)
    return Prediction(probabilities, trace, model=model)
