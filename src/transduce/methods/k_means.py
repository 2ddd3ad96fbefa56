"""Hard and soft k-means, started from the encoder's guess.

MacKay, "Information Theory, Inference, and Learning Algorithms", 2003, pages 286 and 289.
Minimizes sum_nk u_nk (precision / 2) |x_n - mu_k|^2, with the barrier sum u log u if soft.
Baselines of the paper's Table 1: both assume balanced classes, and mostly lose to zero-shot.
"""

from dataclasses import dataclass
from typing import final

from transduce.methods.matching import Matching
from transduce.methods.mixture import MixtureMethod, Recipe
from transduce.mixtures.gaussian import Spherical


@final
@dataclass(frozen=True, kw_only=True)
class HardKMeans(MixtureMethod):
    """Label a batch jointly by k-means from the zero-shot labels on.

    A baseline; a class without images falls back to the origin, as published.

    Parameters
    ----------
    max_iter : int, default=10
        Iterations, at most; 10 as published.
    matching : {"graph", "argmax", "none"}, default="graph"
        How clusters become classes where there are no shots; see `EMDirichlet`.

    Examples
    --------
    >>> from transduce import HardKMeans, Task
    >>> images, classes = [[0.9, 0.1], [0.8, 0.3], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]]
    >>> HardKMeans().predict(Task.from_embeddings(images, classes)).labels.tolist()
    [0, 0, 1]
    """

    name = "hard-k-means"

    max_iter: int = 10
    matching: Matching = "graph"

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: spherical Gaussians, one-hot assignments, no proportions."""
        return Recipe(
            family=Spherical(empty="origin"),
            hard=True,
            max_iter=self.max_iter,
            matching=self.matching,
        )


@final
@dataclass(frozen=True, kw_only=True)
class SoftKMeans(MixtureMethod):
    """Label a batch jointly by k-means with soft assignments.

    A baseline; unlike `EMGaussianIdentity` it ignores how many images each class holds.

    Parameters
    ----------
    max_iter : int, default=20
        20 iterations as published, twice those of `HardKMeans`.
    matching : {"graph", "argmax", "none"}, default="graph"
        As in `HardKMeans`.
    precision : float, default=30.0
        What multiplies squared distances; 30 as published. Larger: harder assignments.

    Examples
    --------
    >>> from transduce import METHODS, Task
    >>> task = Task.from_embeddings([[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]])
    >>> METHODS["soft-k-means"](precision=10.0).predict(task).labels.tolist()
    [0, 1]
    """

    name = "soft-k-means"

    max_iter: int = 20
    matching: Matching = "graph"
    precision: float = 30.0

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: spherical Gaussians, soft assignments, no proportions."""
        return Recipe(
            family=Spherical(self.precision),
            hard=False,
            max_iter=self.max_iter,
            matching=self.matching,
        )
