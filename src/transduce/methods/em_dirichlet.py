"""EM-Dirichlet and Hard EM-Dirichlet: the paper's method.

Martin, Huang, Shakeri, Pesquet, Ben Ayed, "Transductive Zero-Shot and Few-Shot CLIP", CVPR 2024.
Minimizes (equation 4), over assignments u and a Dirichlet alpha_k for each class,

    - sum_nk u_nk log p(z_n | alpha_k)  +  sum_nk u_nk log u_nk  -  lambda sum_k pi_k log pi_k

by Algorithm 2. The hard twin drops the barrier sum u log u, which makes u one-hot; the ablation of
the paper is `penalty=0` in either. The weight on log pi is w = lambda / |Q| = K // classes_present.

Use it for batches that hold few of many classes, where it gains most. Avoid the default weight when
most classes are present: it merges them. Set `classes_present` to about their number, or "all".
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
from transduce.mixtures.dirichlet import Dirichlet
from transduce.simplex.dirichlet import MOST_STEPS, TOLERANCE, Solver, check_solver
from transduce.task import Prediction, Space, Task


@dataclass(frozen=True, kw_only=True)
class EMDirichlet:
    name: ClassVar[str] = "em-dirichlet"
    spaces: ClassVar[tuple[Space, ...]] = ("probability",)
    support: ClassVar[Support] = "optional"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    hard: ClassVar[bool] = False

    penalty: float | None = None
    classes_present: ClassesPresent = 5
    max_iter: int = 20
    matching: Matching = "graph"
    solver: Solver = "fast"
    solver_steps: int = MOST_STEPS
    solver_tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        self.recipe(n_classes=2)  # refuses settings that make no sense

    def recipe(self, n_classes: int) -> Recipe:
        check_solver(self.solver, self.solver_steps)
        return Recipe(
            family=Dirichlet(self.solver, self.solver_steps, self.solver_tolerance),
            hard=self.hard,
            weight=penalty_weight(n_classes, self.penalty, self.classes_present),
            max_iter=self.max_iter,
            matching=self.matching,
        )

    def predict(self, task: Task) -> Prediction:
        return predict_mixture(self, task)

    def prepare(self, task: Task) -> Prepared:
        return prepare(self, task)


@dataclass(frozen=True, kw_only=True)
class HardEMDirichlet(EMDirichlet):
    name: ClassVar[str] = "hard-em-dirichlet"
    hard: ClassVar[bool] = True

    max_iter: int = 10
