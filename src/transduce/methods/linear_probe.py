"""Linear probe: multinomial logistic regression on the embeddings of the shots.

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML 2021,
section 3.2, the first few-shot reference of CLIP. On unit embeddings it minimizes

    sum_shots -log softmax(W x + b)[label]  +  regularization / 2 ||W||^2

by L-BFGS from zero, in coordinates in which the objective is round there. It knows nothing of the
class names: with few shots it is below zero-shot CLIP, with many it passes it. An answer never
depends on the rest of the batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Float64, Int

from transduce.methods.lbfgs import minimize
from transduce.methods.method import RowProbabilities, Rows, Support, accept, warn_unless_converged
from transduce.methods.prototypes import directions, support_of
from transduce.simplex.probabilities import blocks, softmax
from transduce.simplex.threads import one_blas_thread, over_slices
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import positive, whole_from_one

Weights = Float[np.ndarray, "class parameter"]
ROUNDING = 1e-12  # of the trace, so that the Cholesky factor of few shots exists


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
    >>> from transduce import LinearProbe, Task
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
        fit = _Fit(unit, labels, task.n_classes, self.regularization, task.query.dtype)
        with one_blas_thread(0):  # blocks of shots go over threads, each with its own products
            found = minimize(
                fit.value_and_gradient,
                np.zeros((task.n_classes, unit.shape[1] + 1), task.query.dtype),
                lambda gradient: fit.steepest(gradient) <= self.tolerance * len(labels),
                self.max_iter,
            )
        model = fit.classifier(found.parameters)
        probabilities = model.probabilities(task.query).astype(task.query.dtype, copy=False)
        trace = Trace(tuple(found.objective), len(found.objective), found.converged)
        warn_unless_converged(self, trace, "raise max_iter or regularization")
        return Prediction(probabilities, trace, model=model)


class _Fit:
    """The objective in coordinates in which its Hessian at the start is the identity.

    With uniform probabilities, its Hessian is X'X / K + regularization for every class, X being
    the shots with a column of ones for the offsets. In V = W L, where L L' is that matrix, it is
    about 1, and L-BFGS needs fewer steps.
    """

    def __init__(
        self,
        unit: Float64[np.ndarray, "shot feature"],
        labels: Int[np.ndarray, " shot"],
        n_classes: int,
        regularization: float,
        dtype: np.dtype,
    ) -> None:
        from scipy.linalg import cholesky, solve_triangular  # here: it takes 0.3 s to import

        widened = np.hstack([unit, np.ones((len(unit), 1))])
        penalized = np.full(widened.shape[1], regularization)
        penalized[-1] = 0.0  # the offsets are free
        curvature = widened.T @ widened / n_classes + np.diag(penalized)
        root = cholesky(curvature + ROUNDING * np.trace(curvature) * np.eye(len(curvature)), True)
        inverse = solve_triangular(root, np.eye(len(root)), lower=True)
        self._root, self._inverse = root, inverse  # W = V inverse
        self._rows = (widened @ inverse.T).astype(dtype)
        self._penalty = ((inverse * penalized) @ inverse.T).astype(dtype)
        self._labels = labels

    def value_and_gradient(self, parameters: Weights) -> tuple[float, Weights]:
        """Return the objective and its gradient in V."""

        def work(block: slice) -> tuple[float, Weights]:
            rows = self._rows[block]
            of_label = np.arange(len(rows)), self._labels[block]
            scores = rows @ parameters.T
            scores -= scores.max(1, keepdims=True)
            right = scores[of_label]
            np.exp(scores, out=scores)
            sums = scores.sum(1)
            scores /= sums[:, np.newaxis]
            scores[of_label] -= 1.0
            return float((np.log(sums) - right).sum(dtype=float)), scores.T @ rows

        gradient = parameters @ self._penalty
        value = float(np.vdot(parameters, gradient)) / 2
        for loss, pull in over_slices(work, blocks(len(self._rows), len(parameters))):
            value += loss
            gradient += pull
        return value, gradient

    def steepest(self, gradient: Weights) -> float:
        """The largest entry of the gradient in W."""
        return float(np.abs(gradient @ self._root.T).max())

    def classifier(self, parameters: Weights) -> LinearClassifier:
        """The weights and offsets of V."""
        weights = parameters.astype(float) @ self._inverse
        return LinearClassifier(weights[:, :-1], weights[:, -1])
