"""Linear probe: multinomial logistic regression on the embeddings of the shots.

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML 2021,
section 3.2, the first few-shot reference of CLIP. On unit embeddings it minimizes

    sum_shots -log softmax(W x + b)[label]  +  regularization / 2 ||W||^2

by L-BFGS from zero. It knows nothing of the class names: with few shots it is below zero-shot
CLIP, with many it passes it. An answer never depends on the rest of the batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from transduce.methods.method import RowProbabilities, Rows, Support, accept, warn_unless_converged
from transduce.methods.prototypes import directions, support_of
from transduce.simplex.probabilities import softmax
from transduce.simplex.threads import one_blas_thread
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import positive, whole_from_one


@dataclass(frozen=True)
class LinearClassifier:
    """Classifier of rows one at a time: softmax(W x + b) of the unit row x."""

    weights: Float[np.ndarray, "class feature"]
    offsets: Float[np.ndarray, " class"]

    def probabilities(self, rows: Rows) -> RowProbabilities:
        """Class probabilities (row, class) of embeddings, each by itself."""
        unit = directions(np.asarray(rows, dtype=float))
        return softmax(unit @ self.weights.T + self.offsets)


@final
@dataclass(frozen=True, kw_only=True)
class LinearProbe:
    """Label images one by one by logistic regression on the shots' embeddings.

    Few-shot only. It knows nothing of the class names, and needs many shots to pass zero-shot.

    Parameters
    ----------
    regularization : float, default=3.16e-2
        Of the squared weights, above 0: 1 / C in scikit-learn's words. CLIP's own probe used
        C = 0.316 on longer embeddings; unit ones want a larger C. Worth tuning on validation
        images (`LinearProbe.grid`).
    max_iter : int, default=1000
        Iterations of L-BFGS, at most.
    tolerance : float, default=1e-4
        Largest entry of the mean gradient at which it has converged.

    Examples
    --------
    >>> from transduce import Task
    >>> from transduce.methods.linear_probe import LinearProbe
    >>> images, shots = [[0.9, 0.1], [0.2, 0.9]], [[1.0, 0.0], [0.0, 1.0]]
    >>> task = Task.from_embeddings(
    ...     images, shots, support=shots, support_labels=[0, 1], space="embedding"
    ... )
    >>> LinearProbe().predict(task).labels.tolist()
    [0, 1]
    """

    name: ClassVar[str] = "linear-probe"
    spaces: ClassVar[tuple[Space, ...]] = ("embedding",)
    support: ClassVar[Support] = "needed"
    inductive: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "regularization": (1e-3, 3.16e-3, 1e-2, 3.16e-2, 1e-1, 3.16e-1, 1.0, 3.16)
    }

    regularization: float = 3.16e-2
    max_iter: int = 1000
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        positive("regularization", self.regularization)
        positive("tolerance", self.tolerance)
        whole_from_one("max_iter", self.max_iter)

    def predict(self, task: Task) -> Prediction:
        """Fit the support, then label every query by itself."""
        accept(self, task)
        shots, labels = support_of(task)
        unit = directions(shots.astype(float))
        with one_blas_thread(unit.size * task.n_classes):
            model, objective, converged = self._fit(unit, labels, task.n_classes)
        probabilities = model.probabilities(task.query).astype(task.query.dtype, copy=False)
        trace = Trace(tuple(objective), len(objective), converged)
        warn_unless_converged(self, trace, "raise max_iter or regularization")
        return Prediction(probabilities, trace, model=model)

    def _fit(
        self,
        unit: Float[np.ndarray, "shot feature"],
        labels: Int[np.ndarray, " shot"],
        n_classes: int,
    ) -> tuple[LinearClassifier, list[float], bool]:
        from scipy.optimize import minimize  # here, because it takes 0.3 s to import

        shape = (n_classes, unit.shape[1] + 1)
        widened = np.hstack([unit, np.ones((len(unit), 1))])
        objective: list[float] = []
        value_at: dict[str, float] = {}

        def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.loss_and_gradient(flat.reshape(shape), widened, labels)
            value_at["last"] = value
            return value, gradient.ravel()

        result = minimize(
            value_and_gradient,
            np.zeros(shape[0] * shape[1]),
            jac=True,
            method="L-BFGS-B",
            callback=lambda _: objective.append(value_at["last"]),
            options={
                "maxiter": self.max_iter,
                "gtol": self.tolerance * len(labels),  # the objective is a sum over the shots
                "ftol": 64 * np.finfo(float).eps,
            },
        )
        fitted = result.x.reshape(shape)
        return LinearClassifier(fitted[:, :-1], fitted[:, -1]), objective, bool(result.success)

    def loss_and_gradient(
        self,
        parameters: Float[np.ndarray, "class parameter"],
        widened: Float[np.ndarray, "shot parameter"],
        labels: Int[np.ndarray, " shot"],
    ) -> tuple[float, Float[np.ndarray, "class parameter"]]:
        """Return the objective and its gradient; the last column of `parameters` is b."""
        scores = widened @ parameters.T
        scores -= scores.max(1, keepdims=True)
        rows = np.arange(len(labels))
        normalizers = np.log(np.exp(scores).sum(1))
        loss = float((normalizers - scores[rows, labels]).sum())
        errors = np.exp(scores - normalizers[:, np.newaxis])
        errors[rows, labels] -= 1.0
        penalized = parameters.copy()
        penalized[:, -1] = 0.0  # the offsets are free
        loss += self.regularization / 2 * float(np.einsum("kd,kd->", penalized, penalized))
        return loss, errors.T @ widened + self.regularization * penalized
