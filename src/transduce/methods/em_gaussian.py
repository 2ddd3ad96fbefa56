"""EM for Gaussian mixtures, with identity or diagonal covariance and the paper's penalty.

Bishop, "Pattern Recognition and Machine Learning", 2006, page 438; objective (4) of the paper with
a Gaussian for p. Baselines of Table 1: the identity twin collapses into few clusters, the diagonal
one is the best Gaussian model there, and still below the Dirichlet. As published, the first
assignment leaves the class proportions out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from transduce.methods.matching import Matching
from transduce.methods.method import Support
from transduce.methods.mixture import (
    ClassesPresent,
    Prepared,
    Recipe,
    penalty_weight,
    predict_mixture,
    prepare,
)
from transduce.mixtures.family import ComponentFamily
from transduce.mixtures.gaussian import Diagonal, Spherical
from transduce.task import Prediction, Space, Task


@dataclass(frozen=True, kw_only=True)
class EMGaussianDiagonal:
    name: ClassVar[str] = "em-gaussian-diagonal"
    spaces: ClassVar[tuple[Space, ...]] = ("probability", "embedding")
    support: ClassVar[Support] = "optional"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    penalty: float | None = None
    classes_present: ClassesPresent = 5
    max_iter: int = 20
    matching: Matching = "graph"

    def __post_init__(self) -> None:
        self.recipe(n_classes=2)

    def family(self) -> ComponentFamily:
        return Diagonal()

    def recipe(self, n_classes: int) -> Recipe:
        return Recipe(
            family=self.family(),
            hard=False,
            weight=penalty_weight(n_classes, self.penalty, self.classes_present),
            max_iter=self.max_iter,
            matching=self.matching,
            uniform_start=True,
        )

    def predict(self, task: Task) -> Prediction:
        return predict_mixture(self, task)

    def prepare(self, task: Task) -> Prepared:
        return prepare(self, task)


@dataclass(frozen=True, kw_only=True)
class EMGaussianIdentity(EMGaussianDiagonal):
    name: ClassVar[str] = "em-gaussian-identity"

    precision: float = 30.0

    def family(self) -> ComponentFamily:
        return Spherical(self.precision)
