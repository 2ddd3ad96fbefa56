"""EM-Dirichlet and Hard EM-Dirichlet: the paper's method.

Martin, Huang, Shakeri, Pesquet, Ben Ayed, "Transductive Zero-Shot and Few-Shot CLIP", CVPR 2024.
Minimizes (equation 4), over assignments u and a Dirichlet alpha_k for each class,

    - sum_nk u_nk log p(z_n | alpha_k)  +  sum_nk u_nk log u_nk  -  lambda sum_k pi_k log pi_k

by Algorithm 2. The hard twin drops the barrier sum u log u, which makes u one-hot; the ablation of
the paper is `penalty=0` in either. The weight on log pi is w = lambda / |Q| = K // classes_present.

Use it for batches that hold few of many classes, where it gains most. Avoid the default weight when
most classes are present: it merges them. Set `classes_present` to about their number, or "all".
"""

import threading
from dataclasses import dataclass, replace
from typing import ClassVar, final

from transduce.methods.mixture import PenalizedMixture, Recipe
from transduce.mixtures.dirichlet import Dirichlet
from transduce.simplex.dirichlet import (
    MOST_STEPS,
    TOLERANCE,
    Solver,
    check_solver,
    start_compiling,
)
from transduce.task import Space


@dataclass(frozen=True, kw_only=True)
class _DirichletMixture(PenalizedMixture):
    """What the soft and the hard method share; `EMDirichlet` documents the settings."""

    spaces: ClassVar[tuple[Space, ...]] = ("probability",)

    solver: Solver = "fast"
    solver_steps: int = MOST_STEPS
    solver_tolerance: float = TOLERANCE

    @staticmethod
    def start_compiling() -> threading.Thread:
        """Begin to compile what `predict` needs, so that its time is not the solver's."""
        return start_compiling()

    def _dirichlets(self, n_classes: int, *, hard: bool) -> Recipe:
        check_solver(self.solver, self.solver_steps)
        family = Dirichlet(self.solver, self.solver_steps, self.solver_tolerance)
        return replace(self.penalized(n_classes, family, hard=hard), single_products=True)


@final
@dataclass(frozen=True, kw_only=True)
class EMDirichlet(_DirichletMixture):
    """Label a batch jointly by a mixture of Dirichlets with soft assignments.

    The images of a class are modeled by a Dirichlet distribution of their zero-shot probabilities
    softmax(T cos). The distributions are fitted to the batch itself, starting from the zero-shot
    probabilities, and to labeled shots if there are any. A penalty empties classes that hold few
    images, since a batch rarely shows all classes. Prefer this method to `HardEMDirichlet` when
    most of the classes are present.

    Parameters
    ----------
    penalty : float or None, default=None
        Weight w, at least 0, of log pi in the score of a class, where pi is its share of the
        batch. None: computed from `classes_present`. 0 is the paper's ablation without penalty, 1
        is plain EM. Larger values leave fewer classes.
    classes_present : int or "all", default=5
        About how many different classes the batch holds; w = max(1, K // classes_present). 5 is
        the published setting, for batches of 75 images. Not used if `penalty` is given. If
        several classes come out merged into one, raise it; "all" gives w = 1.
    max_iter : int, default=20
        The most iterations; 20 as published. The loop ends earlier if nothing changes any more.
        Raise it if a `ConvergenceWarning` is issued (`Trace.converged` is False).
    matching : {"graph", "argmax", "none"}, default="graph"
        Which class a cluster without shots is, by the mean zero-shot probabilities of its images:
        "graph" pairs clusters and classes one to one with the largest sum, "argmax" takes the
        likeliest class of each cluster, "none" keeps cluster k as class k.
    solver : {"fast", "mm", "minka"}, default="fast"
        How a Dirichlet is fitted. "mm" is the paper's Algorithm 1; "fast" returns its answer many
        times sooner; "minka", by Minka's majorant, is what the paper compares with.
    solver_steps : int, default=1000
        The most steps of a fit. This limit also regularizes classes of a single image, whose
        likelihood has no maximum: with fewer steps they stay wider.
    solver_tolerance : float, default=1e-11
        Squared relative change at which "mm" and "minka" stop; "fast" ignores it.

    See Also
    --------
    HardEMDirichlet : The same with one-hot assignments; better when few classes are present.

    References
    ----------
    Martin, Huang, Shakeri, Pesquet, Ben Ayed, "Transductive Zero-Shot and Few-Shot CLIP", CVPR
    2024.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import EMDirichlet, Task
    >>> random, classes = np.random.default_rng(0), np.eye(8)
    >>> images = classes[[2] * 12 + [5] * 12] + random.normal(0, 0.3, (24, 8))
    >>> task = Task.from_embeddings(images, classes, temperature=10.0)
    >>> prediction = EMDirichlet(classes_present=2, max_iter=100).predict(task)
    >>> np.bincount(prediction.labels).tolist()
    [0, 0, 12, 0, 0, 12]
    >>> prediction.probabilities.shape
    (24, 8)
    """

    name = "em-dirichlet"

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: Dirichlets, soft assignments, the paper's weight."""
        return self._dirichlets(n_classes, hard=False)


@final
@dataclass(frozen=True, kw_only=True)
class HardEMDirichlet(_DirichletMixture):
    """Label a batch jointly by a mixture of Dirichlets with one-hot assignments.

    As `EMDirichlet`, but every image belongs to one class in every iteration. The paper's
    strongest zero-shot method, on batches that hold few of many classes; prefer `EMDirichlet`
    when most of the classes are present.

    Parameters
    ----------
    max_iter : int, default=10
        Iterations, at most; 10 as published. Hard assignments settle sooner than soft ones.
    penalty : float or None, default=None
        Weight of log pi. This and all settings below are those of `EMDirichlet`, see there.
    classes_present : int or "all", default=5
        Number of classes that gives the weight, if `penalty` does not.
    matching : {"graph", "argmax", "none"}, default="graph"
        How clusters become classes.
    solver : {"fast", "mm", "minka"}, default="fast"
        How a Dirichlet is fitted.
    solver_steps : int, default=1000
        Steps of a fit, at most.
    solver_tolerance : float, default=1e-11
        Where "mm" and "minka" stop.

    See Also
    --------
    EMDirichlet : The same with soft assignments.

    Examples
    --------
    >>> from transduce import METHODS, Task
    >>> task = Task.from_embeddings([[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]])
    >>> METHODS["hard-em-dirichlet"](classes_present=2).predict(task).labels.tolist()
    [0, 1]
    """

    name = "hard-em-dirichlet"

    max_iter: int = 10

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: Dirichlets, one-hot assignments, the paper's weight."""
        return self._dirichlets(n_classes, hard=True)
