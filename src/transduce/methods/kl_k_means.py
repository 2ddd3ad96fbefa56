"""Hard k-means under the Kullback-Leibler divergence, on the simplex.

Cao et al., "SAIL: Summation-bAsed Incremental Learning for Information-Theoretic Text Clustering",
2013. Minimizes sum_nk u_nk KL(z_n || c_k) over one-hot u and centroids c. The strongest k-means of
the paper's Table 1: the divergence suits probabilities, but balanced classes are still assumed.
"""

from dataclasses import dataclass
from typing import ClassVar, final

from transduce.methods.matching import Matching
from transduce.methods.mixture import MixtureMethod, Recipe
from transduce.mixtures.kl_centroid import KLCentroid
from transduce.task import Space


@final
@dataclass(frozen=True, kw_only=True)
class KLKMeans(MixtureMethod):
    """Label a batch jointly by k-means under the Kullback-Leibler divergence.

    The strongest k-means of the paper's comparison; a baseline for balanced batches.

    Parameters
    ----------
    max_iter : int, default=10
        Iterations, at most; 10 as published.
    matching : {"graph", "argmax", "none"}, default="graph"
        How clusters become classes where there are no shots: one to one by the largest total
        vote, each its favorite class, or cluster k is class k.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Task
    >>> from transduce.methods.kl_k_means import KLKMeans
    >>> classes = np.eye(4)
    >>> images = classes[np.arange(40) % 4] + np.random.default_rng(0).normal(0, 0.2, (40, 4))
    >>> labels = KLKMeans().predict(Task.from_embeddings(images, classes)).labels
    >>> bool((labels == np.arange(40) % 4).all())
    True
    """

    name = "kl-k-means"
    spaces: ClassVar[tuple[Space, ...]] = ("probability",)

    max_iter: int = 10
    matching: Matching = "graph"

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: KL centroids, one-hot assignments, no proportions."""
        return Recipe(
            family=KLCentroid(), hard=True, max_iter=self.max_iter, matching=self.matching
        )
