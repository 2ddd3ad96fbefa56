"""BD-CSPN: prototypes rectified once by the shifted queries.

Liu, Song, Qin, "Prototype Rectification for Few-Shot Learning", ECCV 2020. No objective is
minimized; in one pass

    x_q'  =  x_q + mean(support) - mean(query)                        (cross-class bias)
    P_k'  =  sum_x w_xk x / sum_x w_xk,   w_x = softmax(e cos(x, P))   (intra-class bias)

with x over the support and the shifted queries, all of unit length; a query takes the class of
the largest cosine between P_k' and its own, unshifted features. As in the comparison this
library reproduces, w weighs every sample for every class, and shots are weighed like queries.
Use it for a cheap lift over class means when all classes are in the batch; avoid it when few of
many classes are, because the shift then moves every query towards classes that are absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from transduce.methods.method import Support, accept
from transduce.methods.prototypes import (
    PrototypeClassifier,
    class_means,
    cosines,
    directions,
    support_of,
)
from transduce.simplex.probabilities import softmax
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import positive


@final
@dataclass(frozen=True, kw_only=True)
class BDCSPN:
    """Label a batch jointly by class means that the shifted queries rectify once.

    Few-shot only. A cheap lift over class means when all classes are in the batch.

    Parameters
    ----------
    temperature : float, default=30.0
        e of softmax(e cos): how sharply samples are weighed for each class, and the scale of the
        answer's probabilities. Worth tuning on validation images (`BDCSPN.grid`).

    Examples
    --------
    >>> from transduce import BDCSPN, Task
    >>> images, shots = [[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]]
    >>> task = Task.from_embeddings(images, shots, support=shots, support_labels=[0, 1])
    >>> BDCSPN().predict(task).labels.tolist()
    [0, 1]
    """

    name: ClassVar[str] = "bd-cspn"
    spaces: ClassVar[tuple[Space, ...]] = ("probability", "embedding")
    support: ClassVar[Support] = "needed"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "temperature": (1.0, 3.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0)
    }

    temperature: float = 30.0

    def __post_init__(self) -> None:
        positive("temperature", self.temperature)

    def predict(self, task: Task) -> Prediction:
        """Label all queries jointly, in one pass."""
        accept(self, task)
        shots, labels = support_of(task)
        support, query = directions(shots.astype(float)), directions(task.query.astype(float))
        shifted = directions(query + support.mean(0) - query.mean(0))
        samples = np.concatenate([support, shifted])
        prototypes = directions(class_means(support, labels, task.n_classes))
        weights = softmax(self.temperature * (samples @ prototypes.T))
        rectified = (weights.T @ samples) / weights.sum(0)[:, np.newaxis]
        model = PrototypeClassifier(cosines, rectified, self.temperature)
        probabilities = model.probabilities(query).astype(task.query.dtype, copy=False)
        trace = Trace(objective=(), iterations=1, converged=True)
        return Prediction(probabilities=probabilities, trace=trace, model=model)
