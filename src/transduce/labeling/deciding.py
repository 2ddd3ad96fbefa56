"""From what a method learnt of the batch to probabilities that a person can go by.

A Dirichlet density multiplies one factor per class and is far too sure of itself: its log is
divided by their number before it becomes a probability. With the automatic method each image's
own evidence is added, softmax(100 cos), so that the batch only tips what the image leaves open;
shots make the classes better known, and their density counts for more. Measured on real features
in results/labeling_choice.md and docs/labeling.md.
"""

import math

import numpy as np
from jaxtyping import Float, Float32

from transduce.labeling.choosing import Choice
from transduce.labeling.presence import own_scores
from transduce.methods.mixture import MixtureModel
from transduce.methods.zero_shot import ZeroShot
from transduce.simplex.probabilities import blocks, softmax
from transduce.task import Prediction, Task


def decide(
    prediction: Prediction, task: Task, choice: Choice
) -> Float32[np.ndarray, "image class"]:
    """The probabilities of every class; in the place of the method's own, where it can be."""
    own = choice.blended or isinstance(choice.method, ZeroShot)
    model = prediction.model if isinstance(prediction.model, MixtureModel) else None
    probabilities = prediction.probabilities
    if model is None and not own:
        return probabilities.astype(np.float32, copy=False)
    dimension = _dimension(task, blended=choice.blended)
    for rows in blocks(*probabilities.shape):
        scores: Float[np.ndarray, "row class"] = np.zeros(probabilities[rows].shape)
        if own:
            scores += own_scores(task.zero_shot[rows], task.temperature)
        if model is not None:
            scores += model.tempered(task.query[rows], dimension)
        probabilities[rows] = softmax(scores)
    return probabilities.astype(np.float32, copy=False)


def _dimension(task: Task, *, blended: bool) -> float:
    """What log densities are divided by."""
    width = float(task.query.shape[1])
    if not blended or task.support is None:
        return width
    return width / math.sqrt(1.0 + len(task.support) / task.n_classes)
