"""`MixtureMethod`: a method as a recipe for the one EM loop, from clusters back to classes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from transduce.errors import InvalidSetting, InvalidTask
from transduce.methods.matching import Matching, check_matching, column_targets, in_classes, match
from transduce.methods.method import RowProbabilities, Rows, Support, accept, warn_unless_converged
from transduce.mixtures.components import PreparedSupport
from transduce.mixtures.em import MixtureFit, fit_mixture
from transduce.mixtures.family import ComponentFamily
from transduce.mixtures.gaussian import Spherical, in_own_span
from transduce.mixtures.queries import ArrayQueries, Queries
from transduce.simplex.passes import Checkpoint, Passes, in_threads
from transduce.simplex.probabilities import softmax
from transduce.simplex.threads import one_blas_thread
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import whole_from_one

ClassesPresent = int | Literal["all"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A mixture method as settings of the EM loop.

    Parameters
    ----------
    family : ComponentFamily
        The densities of the classes, such as `transduce.mixtures.dirichlet.Dirichlet()`.
    hard : bool
        True: one-hot assignments (k-means); False: soft ones (EM).
    weight : float, default=0.0
        Weight w of log pi in an assignment: 0 ignores the class proportions, 1 is plain EM, more
        empties small classes. `penalty_weight` computes the published one.
    max_iter : int
        Iterations, at most.
    matching : {"graph", "argmax", "none"}
        How clusters become classes; see `transduce.methods.matching`.
    uniform_start : bool, default=False
        True: the first assignment leaves log pi out.
    starts_from_support : bool, default=False
        True: start from the classes fitted to the shots; False: from the zero-shot probabilities.
    single_products : bool, default=False
        True: the log densities of a large batch in float32 come from products in float32.

    Examples
    --------
    >>> from transduce.methods.mixture import Recipe
    >>> from transduce.mixtures.gaussian import Spherical
    >>> k_means = Recipe(family=Spherical(), hard=True, max_iter=10, matching="graph")
    >>> k_means.weight
    0.0
    """

    family: ComponentFamily
    hard: bool
    weight: float = 0.0
    max_iter: int
    matching: Matching
    uniform_start: bool = False
    starts_from_support: bool = False
    single_products: bool = False

    def __post_init__(self) -> None:
        check_matching(self.matching)
        whole_from_one("max_iter", self.max_iter)

    def fit(
        self,
        queries: Queries,
        start: Queries,
        n_classes: int,
        support: PreparedSupport | None,
        *,
        keep: bool = True,
        passes: Passes = in_threads,
        checkpoint: Checkpoint | None = None,
    ) -> MixtureFit:
        """Run the EM loop with these settings; the parameters are those of `fit_mixture`."""
        return fit_mixture(
            queries,
            None if self.starts_from_support else start,
            self.family,
            n_classes=n_classes,
            hard=self.hard,
            weight=self.weight,
            max_iter=self.max_iter,
            uniform_start=self.uniform_start,
            single_products=self.single_products,
            support=support,
            keep=keep,
            passes=passes,
            checkpoint=checkpoint,
        )


@dataclass(frozen=True, kw_only=True)
class MixtureMethod(ABC):
    """A method that is a recipe for the EM loop. Concrete classes define `recipe` and `name`.

    `spaces`, `support`, `inductive` and `grid` have the defaults of a mixture. Settings are
    checked on construction, by building the recipe once.
    """

    name: ClassVar[str]
    spaces: ClassVar[tuple[Space, ...]] = ("probability", "embedding")
    support: ClassVar[Support] = "optional"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    @abstractmethod
    def recipe(self, n_classes: int) -> Recipe:
        """Build the recipe for a task of `n_classes` classes; refuse senseless settings."""

    def __post_init__(self) -> None:
        self.recipe(n_classes=2)

    def predict(self, task: Task) -> Prediction:
        """Label all queries of a task jointly.

        Parameters
        ----------
        task : Task
            A task in one of `spaces`, with or without support as `support` says.

        Returns
        -------
        Prediction
            Its `model` is a `MixtureModel`, which labels new images one at a time.

        Warns
        -----
        ConvergenceWarning
            If assignments still changed after the last iteration.
        """
        prediction = _predict(self, task, self._solve(task) if task.support is not None else None)
        warn_unless_converged(self, prediction.trace)
        return prediction

    def prepare(self, task: Task) -> "Prepared":
        """Fit the classes to the support of `task` once, for many query batches.

        Parameters
        ----------
        task : Task
            A task with support; its queries do not matter.

        Returns
        -------
        Prepared
            Its `predict` answers as this method would with the same support, sooner.
        """
        if task.support is None:
            raise InvalidTask("Expected a task with support to prepare, found none.")
        return Prepared(self, self._solve(task), task)

    def _solve(self, task: Task) -> PreparedSupport:
        recipe = _accept(self, task)
        assert task.support is not None
        assert task.support_labels is not None
        return PreparedSupport.solve(
            recipe.family, task.support, task.support_labels, task.n_classes
        )


@dataclass(frozen=True, kw_only=True)
class PenalizedMixture(MixtureMethod):
    """A mixture method with the paper's penalty, which empties classes that hold little.

    The settings are documented in `EMDirichlet`, the paper's own method.
    """

    penalty: float | None = None
    classes_present: ClassesPresent = 5
    max_iter: int = 20
    matching: Matching = "graph"

    def penalized(
        self, n_classes: int, family: ComponentFamily, *, hard: bool, uniform_start: bool = False
    ) -> Recipe:
        """Return the recipe of these settings for one family of densities."""
        return Recipe(
            family=family,
            hard=hard,
            weight=penalty_weight(n_classes, self.penalty, self.classes_present),
            max_iter=self.max_iter,
            matching=self.matching,
            uniform_start=uniform_start,
        )


def _accept(method: MixtureMethod, task: Task) -> Recipe:
    recipe = method.recipe(task.n_classes)
    accept(method, task, partial_support=not recipe.starts_from_support)
    return recipe


def penalty_weight(n_classes: int, penalty: float | None, classes_present: ClassesPresent) -> float:
    """Weight w = lambda / |Q| of log pi: as given, or from how many classes a batch holds.

    The paper prints lambda = (k_eff / K) |Q|; its results come from floor(K / k_eff) |Q|, which
    is the rule here. With all classes present the weight is 1: plain EM (Proposition 1).

    Parameters
    ----------
    n_classes : int
        K, the number of classes of the task.
    penalty : float or None
        The weight itself, at least 0; None: computed from `classes_present`.
    classes_present : int or "all"
        k_eff, about how many classes the batch holds.

    Returns
    -------
    float
        max(1, K // k_eff), or `penalty`.

    Examples
    --------
    >>> penalty_weight(100, None, 5)
    20.0
    >>> penalty_weight(100, None, "all")
    1.0
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


@dataclass(frozen=True)
class Prepared:
    """A method with its support set solved once, for many query batches.

    Parameters
    ----------
    method : MixtureMethod
        The method that was prepared.
    support : PreparedSupport
        The classes as the support alone fits them.
    origin : Task
        The task whose support it is.
    """

    method: MixtureMethod
    support: PreparedSupport
    origin: Task

    def predict(self, task: Task) -> Prediction:
        """Label a task without support, or with the very support that was prepared."""
        self._refuse_other(task)
        prediction = _predict(self.method, task, self.support)
        warn_unless_converged(self.method, prediction.trace)
        return prediction

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


def _predict(method: MixtureMethod, task: Task, support: PreparedSupport | None) -> Prediction:
    """Run the loop on a task, with `support` instead of the task's own."""
    recipe = method.recipe(task.n_classes) if support is not None else _accept(method, task)
    query, basis = task.query, None
    if support is None and isinstance(recipe.family, Spherical):
        with one_blas_thread(0):
            narrowed = in_own_span(query)
        query, basis = (query, None) if narrowed is None else narrowed
    queries = ArrayQueries(query)
    start = queries if query is task.zero_shot else ArrayQueries(task.zero_shot)
    with one_blas_thread(min(task.n_queries, 1024) * task.n_classes * query.shape[1]):
        fit = recipe.fit(queries, start, task.n_classes, support)
    assert fit.assignments is not None
    if basis is not None:
        assignments = fit.assignments.astype(task.query.dtype, copy=False)
        fit = replace(fit, assignments=assignments, parameters=fit.parameters @ basis)
    # Shots anchor the clusters to their classes: only the others are to be matched.
    anchored = np.zeros(task.n_classes, bool) if support is None else support.statistics.mass > 0
    matching = "none" if anchored.all() else recipe.matching
    return _in_classes(fit, recipe.family, task, matching, anchored)


def _in_classes(
    fit: MixtureFit,
    family: ComponentFamily,
    task: Task,
    matching: Matching,
    anchored: Bool[np.ndarray, " class"],
) -> Prediction:
    assert fit.assignments is not None
    clusters = fit.assignments.argmax(1)
    class_of_cluster = match(clusters, task, matching, anchored)
    unmoved = matching == "none"
    return Prediction(
        probabilities=fit.assignments if unmoved else in_classes(fit.assignments, class_of_cluster),
        trace=Trace(fit.objective, fit.iterations, fit.converged),
        clusters=clusters,
        class_of_cluster=class_of_cluster,
        model=MixtureModel(family, fit.parameters, fit.log_prior, class_of_cluster),
    )


@dataclass(frozen=True)
class MixtureModel:
    """The fitted classes of a mixture, for new images one at a time.

    Parameters
    ----------
    family : ComponentFamily
        The densities of the clusters.
    parameters : array of shape (cluster, parameter)
        The fitted parameters of each cluster.
    log_prior : array of shape (cluster,)
        w log pi, as the last assignments used it.
    class_of_cluster : array of int of shape (cluster,)
        The class that each cluster was matched with; -1 for a cluster without members.
    """

    family: ComponentFamily
    parameters: Float[np.ndarray, "class parameter"]
    log_prior: Float[np.ndarray, " class"]
    class_of_cluster: Int[np.ndarray, " class"]

    def arrays(self) -> dict[str, np.ndarray]:
        """Parameters, prior and classes of the clusters by name, to be kept in a file."""
        names = ("parameters", "log_prior", "class_of_cluster")
        return {name: getattr(self, name) for name in names}

    def probabilities(self, rows: Rows) -> RowProbabilities:
        """Class probabilities (row, class) of new images, each by itself."""
        return in_classes(softmax(self._scores(rows)), self.class_of_cluster)

    def tempered(
        self, rows: Float[np.ndarray, "row feature"], dimension: float
    ) -> Float[np.ndarray, "row class"]:
        """Log probabilities (row, class) up to a constant per row, divided by `dimension`.

        A density of many features counts each as evidence of its own, and is too confident.
        Clusters that share a class add their probabilities; a class without a cluster has -inf.
        """
        scores = self._scores(rows)
        scores = (scores - scores.max(1, keepdims=True)) / dimension
        return in_cluster_classes(scores, self.class_of_cluster)

    def _scores(self, rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row class"]:
        eta, log_normalizer = self.family.natural(self.parameters)
        return self.family.statistic(rows) @ eta.T - log_normalizer + self.log_prior


def in_cluster_classes(
    scores: Float[np.ndarray, "row cluster"], class_of_cluster: Int[np.ndarray, " cluster"]
) -> Float[np.ndarray, "row class"]:
    """Log probabilities of classes from those of clusters: of clusters that share one, the sum."""
    target = column_targets(class_of_cluster)
    classes = np.full_like(scores, -np.inf)
    if len(np.unique(target)) == len(target):
        classes[:, target] = scores
        return classes
    for cluster, class_index in enumerate(target):
        column = classes[:, class_index]
        np.logaddexp(column, scores[:, cluster], out=column)
    return classes
