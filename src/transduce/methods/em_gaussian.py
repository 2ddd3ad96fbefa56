"""EM for Gaussian mixtures, with identity or diagonal covariance and the paper's penalty.

Bishop, "Pattern Recognition and Machine Learning", 2006, page 438; objective (4) of the paper with
a Gaussian for p. Baselines of Table 1: the identity twin collapses into few clusters, the diagonal
one is the best Gaussian model there, and still below the Dirichlet. As published, the first
assignment leaves the class proportions out.
"""

from dataclasses import dataclass
from typing import final

from transduce.methods.mixture import PenalizedMixture, Recipe
from transduce.mixtures.gaussian import Diagonal, Spherical


@final
@dataclass(frozen=True, kw_only=True)
class EMGaussianDiagonal(PenalizedMixture):
    """Label a batch jointly by a mixture of Gaussians with diagonal covariances.

    The baseline to compare `EMDirichlet` with; takes embeddings too.

    Parameters
    ----------
    penalty : float or None, default=None
        Weight w of log pi in an assignment; None: computed from `classes_present`.
    classes_present : int or "all", default=5
        About how many classes the batch holds. Raise it if classes come out merged into one.
    max_iter : int, default=20
        Iterations, at most; 20 as published.
    matching : {"graph", "argmax", "none"}, default="graph"
        How clusters become classes; see `EMDirichlet`, also for the other settings.

    Examples
    --------
    >>> from transduce import EMGaussianDiagonal, Task
    >>> images, classes = [[0.9, 0.1], [0.8, 0.3], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]]
    >>> task = Task.from_embeddings(images, classes)
    >>> EMGaussianDiagonal(classes_present="all").predict(task).labels.tolist()
    [0, 0, 1]
    """

    name = "em-gaussian-diagonal"

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: diagonal Gaussians, soft assignments, the paper's weight."""
        return self.penalized(n_classes, Diagonal(), hard=False, uniform_start=True)


@final
@dataclass(frozen=True, kw_only=True)
class EMGaussianIdentity(PenalizedMixture):
    """Label a batch jointly by a mixture of Gaussians of one fixed width.

    Soft k-means with class proportions. A baseline: on softmax features most queries end in few
    clusters, and `EMGaussianDiagonal` is the better Gaussian model.

    Parameters
    ----------
    precision : float, default=30.0
        Inverse variance of every feature; 30 as published. Larger: harder assignments.
    penalty : float or None, default=None
        As in `EMGaussianDiagonal`, like the settings below.
    classes_present : int or "all", default=5
        Gives the weight if `penalty` does not.
    max_iter : int, default=20
        20 as published.
    matching : {"graph", "argmax", "none"}, default="graph"
        Of clusters with classes.

    Examples
    --------
    >>> from transduce import METHODS, Task
    >>> task = Task.from_embeddings([[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]])
    >>> METHODS["em-gaussian-identity"](precision=10.0).predict(task).labels.tolist()
    [0, 1]
    """

    name = "em-gaussian-identity"

    precision: float = 30.0

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: spherical Gaussians, soft assignments, the paper's weight."""
        family = Spherical(self.precision)
        return self.penalized(n_classes, family, hard=False, uniform_start=True)
