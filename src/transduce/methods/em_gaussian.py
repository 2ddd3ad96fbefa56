"""EM for Gaussian mixtures, with identity or diagonal covariance and the paper's penalty.

Bishop, "Pattern Recognition and Machine Learning", 2006, page 438; objective (4) of the paper with
a Gaussian for p. Baselines of Table 1: the identity twin collapses into few clusters, the diagonal
one is the best Gaussian model there, and still below the Dirichlet. As published, the first
assignment leaves the class proportions out.
"""

from dataclasses import dataclass
from typing import final

from transduce.methods.matching import Matching
from transduce.methods.mixture import ClassesPresent, MixtureMethod, Recipe, penalty_weight
from transduce.mixtures.family import ComponentFamily
from transduce.mixtures.gaussian import Diagonal, Spherical


@final
@dataclass(frozen=True, kw_only=True)
class EMGaussianDiagonal(MixtureMethod):
    """Label a batch jointly by a mixture of Gaussians with diagonal covariances.

    The baseline to compare `EMDirichlet` with; takes embeddings too.

    Parameters
    ----------
    penalty : float or None, default=None
        Weight w of log pi in an assignment, at least 0. None: computed from `classes_present`.
    classes_present : int or "all", default=5
        About how many different classes the batch holds; w = max(1, K // classes_present). 5 as
        published. Raise it if several classes come out merged into one; "all" gives w = 1.
    max_iter : int, default=20
        Iterations, at most; 20 as published.
    matching : {"graph", "argmax", "none"}, default="graph"
        How clusters become classes where there are no shots: one to one by the largest total
        vote, each its favorite class, or cluster k is class k.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Task
    >>> from transduce.methods.em_gaussian import EMGaussianDiagonal
    >>> classes = np.eye(4)
    >>> images = classes[np.arange(40) % 4] + np.random.default_rng(0).normal(0, 0.2, (40, 4))
    >>> task = Task.from_embeddings(images, classes, temperature=10.0)
    >>> labels = EMGaussianDiagonal(classes_present="all", max_iter=100).predict(task).labels
    >>> bool((labels == np.arange(40) % 4).all())
    True
    """

    name = "em-gaussian-diagonal"

    penalty: float | None = None
    classes_present: ClassesPresent = 5
    max_iter: int = 20
    matching: Matching = "graph"

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: diagonal Gaussians, soft assignments, the paper's weight."""
        return _recipe(self, Diagonal(), n_classes)


@final
@dataclass(frozen=True, kw_only=True)
class EMGaussianIdentity(MixtureMethod):
    """Label a batch jointly by a mixture of Gaussians of one fixed width.

    Soft k-means with class proportions. A baseline: on softmax features most queries end in few
    clusters, and `EMGaussianDiagonal` is the better Gaussian model.

    Parameters
    ----------
    penalty : float or None, default=None
        Weight w of log pi in an assignment, at least 0. None: computed from `classes_present`.
    classes_present : int or "all", default=5
        About how many different classes the batch holds; w = max(1, K // classes_present). 5 as
        published. Raise it if several classes come out merged into one; "all" gives w = 1.
    max_iter : int, default=20
        Iterations, at most; 20 as published.
    matching : {"graph", "argmax", "none"}, default="graph"
        How clusters become classes where there are no shots: one to one by the largest total
        vote, each its favorite class, or cluster k is class k.
    precision : float, default=30.0
        Inverse variance of every feature; 30 as published. Larger: harder assignments.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Task
    >>> from transduce.methods.em_gaussian import EMGaussianIdentity
    >>> classes = np.eye(4)
    >>> images = classes[np.arange(40) % 4] + np.random.default_rng(0).normal(0, 0.2, (40, 4))
    >>> task = Task.from_embeddings(images, classes, temperature=10.0)
    >>> labels = EMGaussianIdentity(classes_present="all", max_iter=100).predict(task).labels
    >>> bool((labels == np.arange(40) % 4).all())
    True
    """

    name = "em-gaussian-identity"

    penalty: float | None = None
    classes_present: ClassesPresent = 5
    max_iter: int = 20
    matching: Matching = "graph"
    precision: float = 30.0

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: spherical Gaussians, soft assignments, the paper's weight."""
        return _recipe(self, Spherical(self.precision), n_classes)


def _recipe(
    method: EMGaussianDiagonal | EMGaussianIdentity, family: ComponentFamily, n_classes: int
) -> Recipe:
    return Recipe(
        family=family,
        hard=False,
        weight=penalty_weight(n_classes, method.penalty, method.classes_present),
        max_iter=method.max_iter,
        matching=method.matching,
        uniform_start=True,
    )
