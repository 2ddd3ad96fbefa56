"""PADDLE: k-means with a partition-complexity penalty, from labeled shots.

Martin, Boudiaf, Chouzenoux, Pesquet, Ben Ayed, "Towards Practical Few-Shot Query Sets: Transductive
Minimum Description Length Inference", NeurIPS 2022. Objective (4) of the paper with a unit Gaussian
for p, started from the prototypes of the support. Its `penalty` is the weight w = lambda / |Q| and
is tuned: the published grid is lambda in 0 .. 100 for batches of 75. Made for visual features; on
softmax features the Dirichlet model is well ahead of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from transduce.methods.method import Support
from transduce.methods.mixture import (
    Prepared,
    Recipe,
    penalty_weight,
    predict_mixture,
    prepare,
)
from transduce.mixtures.gaussian import Spherical
from transduce.task import Prediction, Space, Task


@dataclass(frozen=True, kw_only=True)
class Paddle:
    name: ClassVar[str] = "paddle"
    spaces: ClassVar[tuple[Space, ...]] = ("probability", "embedding")
    support: ClassVar[Support] = "needed"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "penalty": tuple(strength / 75 for strength in (0, 1, 2, 5, 10, 20, 35, 50, 100))
    }

    penalty: float = 5 / 75
    max_iter: int = 20

    def __post_init__(self) -> None:
        self.recipe(n_classes=2)

    def recipe(self, n_classes: int) -> Recipe:
        return Recipe(
            family=Spherical(),
            hard=False,
            weight=penalty_weight(n_classes, self.penalty, "all"),
            max_iter=self.max_iter,
            matching="none",
            starts_from_support=True,
        )

    def predict(self, task: Task) -> Prediction:
        return predict_mixture(self, task)

    def prepare(self, task: Task) -> Prepared:
        return prepare(self, task)
