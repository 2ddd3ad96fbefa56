"""Hard k-means under the Kullback-Leibler divergence, on the simplex.

Cao et al., "SAIL: Summation-bAsed Incremental Learning for Information-Theoretic Text Clustering",
2013. Minimizes sum_nk u_nk KL(z_n || c_k) over one-hot u and centroids c. The strongest k-means of
the paper's Table 1: the divergence suits probabilities, but balanced classes are still assumed.
"""

from dataclasses import dataclass
from typing import ClassVar

from transduce.methods.k_means import HardKMeans
from transduce.methods.mixture import Recipe
from transduce.mixtures.kl_centroid import KLCentroid
from transduce.task import Space


@dataclass(frozen=True, kw_only=True)
class KLKMeans(HardKMeans):
    name: ClassVar[str] = "kl-k-means"
    spaces: ClassVar[tuple[Space, ...]] = ("probability",)

    def recipe(self, n_classes: int) -> Recipe:
        return Recipe(
            family=KLCentroid(), hard=True, max_iter=self.max_iter, matching=self.matching
        )
