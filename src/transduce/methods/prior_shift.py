"""Prior shift: the encoder's guess, reweighted by the class proportions of the batch.

Saerens, Latinne, Decaestecker, "Adjusting the Outputs of a Classifier to New a Priori
Probabilities: A Simple Procedure", Neural Computation 2002. With y_i = softmax(100 cos), the
encoder's guess under equal proportions, it minimizes over the proportions pi of the batch

    - sum_i log sum_k pi_k y_ik

by EM: q_ik = y_ik pi_k / sum_l y_il pi_l, pi_k = mean_i q_ik; the answer is q. The images
themselves are not looked at again, so it costs two passes over y an iteration.
Use it as the cheapest joint method where a batch holds few of many classes (on six real sets +4
points for 64 images of 1 to 4 classes). Avoid it where every class may be present: a class that
the encoder names too rarely is then named still more rarely (whole sets: -7 points, -20 on the
worst).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from transduce.methods.method import Support, accept, warn_unless_converged
from transduce.methods.prototypes import directions
from transduce.methods.text_guess import log_text_guess, unit_embeddings
from transduce.simplex.probabilities import softmax
from transduce.simplex.threads import one_blas_thread
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import at_least_zero, positive, whole_from_one


@final
@dataclass(frozen=True, kw_only=True)
class PriorShift:
    """Label a batch jointly by the encoder's guess and the class proportions of the batch.

    Zero-shot; shots are not used. The cheapest joint method. Good where a batch holds few of many
    classes; worse than zero-shot where all of them are present.

    Parameters
    ----------
    text_scale : float, default=100.0
        What multiplies cosines in the encoder's guess: CLIP's learned logit scale.
    max_iter : int, default=50
        Iterations, all of them done. Proportions of absent classes fall slowly towards 0; raise it
        if the trace says that they had not settled.
    tolerance : float, default=1e-3
        Change of a class proportion in the last iteration up to which they count as settled.

    References
    ----------
    Saerens, Latinne, Decaestecker, "Adjusting the Outputs of a Classifier to New a Priori
    Probabilities: A Simple Procedure", Neural Computation 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import PriorShift, Task
    >>> random, classes = np.random.default_rng(0), np.eye(8)
    >>> images = classes[[2] * 12 + [5] * 12] + random.normal(0, 0.2, (24, 8))
    >>> task = Task.from_embeddings(images, classes, space="embedding")
    >>> np.bincount(PriorShift().predict(task).labels).tolist()
    [0, 0, 12, 0, 0, 12]
    """

    name: ClassVar[str] = "prior-shift"
    spaces: ClassVar[tuple[Space, ...]] = ("embedding",)
    support: ClassVar[Support] = "unused"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    text_scale: float = 100.0
    max_iter: int = 50
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        positive("text_scale", self.text_scale)
        whole_from_one("max_iter", self.max_iter)
        at_least_zero("tolerance", self.tolerance)

    def predict(self, task: Task) -> Prediction:
        """Label all queries jointly; warn if the proportions did not settle."""
        accept(self, task)
        query, classes = unit_embeddings(self, task)
        with one_blas_thread(query.size * len(classes)):
            guess = log_text_guess(query, classes, self.text_scale)
            np.exp(guess, out=guess)
            proportions, trace = self._fit(guess)
        warn_unless_converged(self, trace)
        guess *= proportions.astype(guess.dtype)
        guess /= guess.sum(1, keepdims=True)
        return Prediction(
            probabilities=guess,
            trace=trace,
            model=PriorShiftModel(classes, proportions, self.text_scale),
        )

    def _fit(
        self, guess: Float[np.ndarray, "query class"]
    ) -> tuple[Float[np.ndarray, " class"], Trace]:
        """Return the class proportions and the negative log likelihood after each iteration."""
        n_queries, n_classes = guess.shape
        proportions = np.full(n_classes, 1.0 / n_classes)
        evidence = _evidence(guess, proportions)
        objective: list[float] = []
        change = np.inf
        for _ in range(self.max_iter):
            # The mean of q over the queries, without q.
            inverse = (1.0 / evidence).astype(guess.dtype)
            updated = proportions * (inverse @ guess) / n_queries
            updated /= updated.sum()
            change = float(np.abs(updated - proportions).max())
            proportions = updated
            evidence = _evidence(guess, proportions)
            objective.append(-float(np.log(evidence).sum()))
        return proportions, Trace(tuple(objective), self.max_iter, change <= self.tolerance)


@dataclass(frozen=True)
class PriorShiftModel:
    """Classifier of new images: the encoder's guess under the proportions of the batch."""

    classes: Float[np.ndarray, "class feature"]
    proportions: Float[np.ndarray, " class"]
    text_scale: float

    def probabilities(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row class"]:
        """Class probabilities (row, class) of new images, each by itself."""
        scores = self.text_scale * (directions(rows) @ self.classes.T)
        return softmax(scores + np.log(np.maximum(self.proportions, np.finfo(float).tiny)))


def _evidence(
    guess: Float[np.ndarray, "query class"], proportions: Float[np.ndarray, " class"]
) -> Float[np.ndarray, " query"]:
    """Return sum_k pi_k y_ik of each query, in float64 and above 0."""
    evidence = (guess @ proportions.astype(guess.dtype)).astype(float)
    return np.maximum(evidence, np.finfo(np.float32).tiny)
