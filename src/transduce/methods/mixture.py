"""What the mixture methods share: a recipe for the one EM loop, and the way back to classes."""

from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from transduce.errors import InvalidSetting, InvalidTask
from transduce.methods.matching import Matching, check_matching, in_classes, match
from transduce.methods.method import Method, accept
from transduce.mixtures.em import MixtureFit, PreparedSupport, fit_mixture
from transduce.mixtures.family import ComponentFamily
from transduce.simplex.probabilities import softmax
from transduce.simplex.threads import one_blas_thread
from transduce.task import Prediction, Task, Trace

ClassesPresent = int | Literal["all"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A method as settings of the loop: the family, how to assign, and the weight of log pi."""

    family: ComponentFamily
    hard: bool
    weight: float = 0.0
    max_iter: int
    matching: Matching
    uniform_start: bool = False  # the first assignment leaves log pi out
    starts_from_support: bool = False  # instead of from the encoder's guess

    def __post_init__(self) -> None:
        check_matching(self.matching)
        if self.max_iter < 1:
            raise InvalidSetting(f"Expected max_iter of at least 1, found {self.max_iter}.")


@runtime_checkable
class MixtureMethod(Method, Protocol):
    def recipe(self, n_classes: int) -> Recipe: ...


def penalty_weight(n_classes: int, penalty: float | None, classes_present: ClassesPresent) -> float:
    """The weight w = lambda / |Q| of log pi: given, or from how many classes a batch holds.

    The paper prints lambda = (k_eff / K) |Q|; its results come from floor(K / k_eff) |Q|, which
    is the rule here. With all classes present the weight is 1: plain EM (Proposition 1).
    """
    if penalty is not None:
        if not penalty >= 0.0:
            raise InvalidSetting(f"Expected a penalty of at least 0, found {penalty!r}.")
        return float(penalty)
    if classes_present == "all":
        return 1.0
    if not isinstance(classes_present, int) or classes_present < 1:
        raise InvalidSetting(
            f'Expected classes_present to be a whole number from 1 or "all", '
            f"found {classes_present!r}."
        )
    return float(max(1, n_classes // classes_present))


def predict_mixture(
    method: MixtureMethod, task: Task, prepared: PreparedSupport | None = None
) -> Prediction:
    """Run the loop on a task; the prepared support, if given, stands for the task's own."""
    start = perf_counter()
    recipe = method.recipe(task.n_classes)
    if prepared is None:
        accept(method, task, partial_support=not recipe.starts_from_support)
    if prepared is None and task.support is not None:
        prepared = _solve_support(recipe, task)
    with one_blas_thread(min(task.n_queries, 1024) * task.n_classes * task.query.shape[1]):
        fit = fit_mixture(
            task.query,
            None if recipe.starts_from_support else task.zero_shot,
            recipe.family,
            n_classes=task.n_classes,
            hard=recipe.hard,
            weight=recipe.weight,
            max_iter=recipe.max_iter,
            uniform_start=recipe.uniform_start,
            support=prepared,
        )
    # Shots anchor the clusters to their classes: only the others are to be matched.
    anchored = np.zeros(task.n_classes, bool) if prepared is None else prepared.statistics.mass > 0
    matching = "none" if anchored.all() else recipe.matching
    return _in_classes(fit, recipe, task, matching, anchored, start)


def _in_classes(
    fit: MixtureFit,
    recipe: Recipe,
    task: Task,
    matching: Matching,
    anchored: Bool[np.ndarray, " class"],
    start: float,
) -> Prediction:
    clusters = fit.assignments.argmax(1)
    class_of_cluster = match(clusters, task, matching, anchored)
    unmoved = matching == "none"
    return Prediction(
        probabilities=fit.assignments if unmoved else in_classes(fit.assignments, class_of_cluster),
        trace=Trace(fit.objective, fit.iterations, fit.converged, perf_counter() - start),
        clusters=clusters,
        class_of_cluster=class_of_cluster,
        model=MixtureModel(recipe.family, fit.parameters, fit.log_prior, class_of_cluster),
    )


@dataclass(frozen=True)
class MixtureModel:
    """The fitted classes, for one new image at a time."""

    family: ComponentFamily
    parameters: Float[np.ndarray, "class parameter"]
    log_prior: Float[np.ndarray, " class"]
    class_of_cluster: Int[np.ndarray, " class"]

    def probabilities(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row class"]:
        return in_classes(softmax(self._scores(rows)), self.class_of_cluster)

    def tempered(
        self, rows: Float[np.ndarray, "row feature"], dimension: float
    ) -> Float[np.ndarray, "row class"]:
        """Log probabilities up to a constant per row, with the log density divided by `dimension`.

        A density of many features counts each as evidence of its own, and is all too sure.
        """
        scores = self._scores(rows)
        scores = (scores - scores.max(1, keepdims=True)) / dimension
        return in_classes(scores, self.class_of_cluster)

    def _scores(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row class"]:
        eta, log_normalizer = self.family.natural(self.parameters)
        scores: Float[np.ndarray, "row class"]
        scores = self.family.statistic(rows) @ eta.T - log_normalizer + self.log_prior
        return scores


@dataclass(frozen=True)
class Prepared:
    """A method with its support set solved once, for many query batches.

    `predict` takes tasks without support, or with the very support that was prepared, and
    answers as the method itself would with that support.
    """

    method: MixtureMethod
    support: PreparedSupport
    origin: Task

    def predict(self, task: Task) -> Prediction:
        self._refuse_other(task)
        return predict_mixture(self.method, task, self.support)

    def _refuse_other(self, task: Task) -> None:
        shape = (task.space, task.query.shape[1], task.n_classes)
        expected = (self.origin.space, self.origin.query.shape[1], self.origin.n_classes)
        if shape != expected:
            raise InvalidTask(
                f"Expected a task like the prepared one (space, columns, classes) = {expected}, "
                f"found {shape}."
            )
        if task.support is None or task.support is self.origin.support:
            return
        if not (
            np.array_equal(task.support, self.origin.support)  # type: ignore[arg-type]
            and np.array_equal(task.support_labels, self.origin.support_labels)  # type: ignore[arg-type]
        ):
            raise InvalidTask(
                "Expected a task with the prepared support or none, found another support; "
                "prepare the method with it."
            )


def prepare(method: MixtureMethod, task: Task) -> Prepared:
    """Solve the support of `task` once."""
    recipe = method.recipe(task.n_classes)
    accept(method, task, partial_support=not recipe.starts_from_support)
    if task.support is None:
        raise InvalidTask("Expected a task with support to prepare, found none.")
    return Prepared(method, _solve_support(recipe, task), task)


def _solve_support(recipe: Recipe, task: Task) -> PreparedSupport:
    assert task.support is not None
    assert task.support_labels is not None
    return PreparedSupport.solve(recipe.family, task.support, task.support_labels, task.n_classes)
