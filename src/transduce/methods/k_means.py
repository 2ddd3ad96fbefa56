"""Hard and soft k-means, started from the encoder's guess.

MacKay, "Information Theory, Inference, and Learning Algorithms", 2003, pages 286 and 289.
Minimizes sum_nk u_nk (precision / 2) |x_n - mu_k|^2, with the barrier sum u log u if soft.
Baselines of the paper's Table 1: both assume balanced classes, and mostly lose to zero-shot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from transduce.methods.matching import Matching
from transduce.methods.method import Support
from transduce.methods.mixture import Prepared, Recipe, predict_mixture, prepare
from transduce.mixtures.gaussian import Spherical
from transduce.task import Prediction, Space, Task


@dataclass(frozen=True, kw_only=True)
class HardKMeans:
    name: ClassVar[str] = "hard-k-means"
    spaces: ClassVar[tuple[Space, ...]] = ("probability", "embedding")
    support: ClassVar[Support] = "optional"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    max_iter: int = 10
    matching: Matching = "graph"

    def __post_init__(self) -> None:
        self.recipe(n_classes=2)

    def recipe(self, n_classes: int) -> Recipe:
        return Recipe(
            family=Spherical(empty="origin"),
            hard=True,
            max_iter=self.max_iter,
            matching=self.matching,
        )

    def predict(self, task: Task) -> Prediction:
        return predict_mixture(self, task)

    def prepare(self, task: Task) -> Prepared:
        return prepare(self, task)


@dataclass(frozen=True, kw_only=True)
class SoftKMeans(HardKMeans):
    name: ClassVar[str] = "soft-k-means"

    max_iter: int = 20
    precision: float = 30.0

    def recipe(self, n_classes: int) -> Recipe:
        return Recipe(
            family=Spherical(self.precision),
            hard=False,
            max_iter=self.max_iter,
            matching=self.matching,
        )
