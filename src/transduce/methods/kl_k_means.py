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
    matching : {"graph", "argmax", "none"}, default="graph"
        How clusters become classes, as in `HardKMeans`.
    max_iter : int, default=10
        Most iterations, as published.

    Examples
    --------
    >>> from transduce import METHODS, Task
    >>> task = Task.from_embeddings([[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]])
    >>> METHODS["kl-k-means"]().predict(task).labels.tolist()
    [0, 1]
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
