"""PADDLE: k-means with a partition-complexity penalty, from labeled shots.

Martin, Boudiaf, Chouzenoux, Pesquet, Ben Ayed, "Towards Practical Few-Shot Query Sets: Transductive
Minimum Description Length Inference", NeurIPS 2022. Objective (4) of the paper with a unit Gaussian
for p, started from the prototypes of the support. Its `penalty` is the weight w = lambda / |Q| and
is tuned: the published grid is lambda in 0 .. 100 for batches of 75. Made for visual features; on
softmax features the Dirichlet model is well ahead of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from transduce.methods.method import Support
from transduce.methods.mixture import MixtureMethod, Recipe, penalty_weight
from transduce.mixtures.gaussian import Spherical


@final
@dataclass(frozen=True, kw_only=True)
class Paddle(MixtureMethod):
    """Label a batch jointly by penalized k-means, started from labeled shots of every class.

    For few-shot tasks on image embeddings whose batch holds few of the classes; on probabilities
    `EMDirichlet` is the stronger one.

    Parameters
    ----------
    penalty : float, default=5/75
        Weight w = lambda / |Q| of log pi in an assignment, at least 0; the default is lambda = 5
        for 75 queries. Worth tuning on validation images (`Paddle.grid`): larger values leave
        fewer classes.
    max_iter : int, default=20
        Iterations, at most; 20 as published.

    Examples
    --------
    >>> from transduce import Paddle, Task
    >>> images, shots = [[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]]
    >>> task = Task.from_embeddings(
    ...     images, shots, support=shots, support_labels=[0, 1], space="embedding"
    ... )
    >>> Paddle().predict(task).labels.tolist()
    [0, 1]
    """

    name = "paddle"
    support: ClassVar[Support] = "needed"
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "penalty": tuple(strength / 75 for strength in (0, 1, 2, 5, 10, 20, 35, 50, 100))
    }

    penalty: float = 5 / 75
    max_iter: int = 20

    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe: unit Gaussians from the support, soft assignments, `penalty`."""
        return Recipe(
            family=Spherical(),
            hard=False,
            weight=penalty_weight(n_classes, self.penalty, "all"),
            max_iter=self.max_iter,
            matching="none",
            starts_from_support=True,
        )
