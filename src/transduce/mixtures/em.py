"""The one loop: block majorisation-minimization of the paper's objective (Algorithm 2).

    minimize  - sum_nk u_nk log p(x_n | theta_k)     (support and query)
              + sum_nk u_nk log u_nk                 (the barrier, soft only)
              - w |Q| sum_k pi_k log pi_k            (partition complexity)

over parameters theta, then assignments u of the queries; pi is the mean of u. Every step works
on sufficient statistics, and only on what changed: a class whose statistics are the same as when
it was last fitted keeps its parameters and its column of log densities. Memory is one array of
the size of the query's probabilities, blocks of bounded size, and a few of class x statistic.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from transduce.mixtures.assignment import assign, log_proportions, partition_complexity
from transduce.mixtures.family import ComponentFamily, Statistics, log_likelihood, rows_of
from transduce.simplex.grouping import group_sums
from transduce.simplex.probabilities import blocks

SAME = 1e-10  # relative; statistics closer than this to those of the last fit have not changed


@dataclass(frozen=True)
class PreparedSupport:
    """The support-only fit of every class, with the statistics of the shots."""

    statistics: Statistics
    parameters: Float[np.ndarray, "class parameter"]
    eta: Float[np.ndarray, "class statistic"]
    log_normalizer: Float[np.ndarray, " class"]
    likelihood: Float[np.ndarray, " class"]
    log_carrier: float

    @classmethod
    def solve(
        cls,
        family: ComponentFamily,
        support: Float[np.ndarray, "shot feature"],
        labels: Int[np.ndarray, " shot"],
        n_classes: int,
    ) -> "PreparedSupport":
        """Fit every class to its own shots; classes without shots get initial parameters."""
        mass = np.bincount(labels, minlength=n_classes).astype(np.float64)
        statistics = Statistics(mass, group_sums(support, labels, n_classes, family.statistic))
        log_carrier = sum(
            float(family.log_carrier(support[rows]).sum()) for rows in blocks(*support.shape)
        )
        parameters = family.maximize(statistics, family.initial(n_classes, support.shape[1]))
        eta, log_normalizer = family.natural(parameters)
        likelihood = log_likelihood(statistics, eta, log_normalizer)
        return cls(statistics, parameters, eta, log_normalizer, likelihood, log_carrier)


@dataclass(frozen=True)
class MixtureFit:
    """Result of `fit_mixture`: assignments, fitted classes, and how they were reached."""

    assignments: Float[np.ndarray, "query class"]
    parameters: Float[np.ndarray, "class parameter"]
    log_prior: Float[np.ndarray, " class"]  # w log pi, as the last assignments used it
    objective: tuple[float, ...]
    iterations: int
    converged: bool


def fit_mixture(
    query: Float[np.ndarray, "query feature"],
    start: Float[np.ndarray, "query class"] | None,
    family: ComponentFamily,
    *,
    n_classes: int,
    hard: bool,
    weight: float,
    max_iter: int,
    uniform_start: bool = False,
    support: PreparedSupport | None = None,
) -> MixtureFit:
    """Fit a mixture to the queries and assign each of them.

    Parameters
    ----------
    query : array of shape (query, feature)
        The unlabeled rows.
    start : array of shape (query, class), or None
        First assignments; None: start from the classes as `support` alone fits them.
    family : ComponentFamily
        The densities of the classes.
    n_classes : int
        Number of classes.
    hard : bool
        One-hot assignments rather than soft ones.
    weight : float
        w, of log pi in an assignment.
    max_iter : int
        Iterations, at most.
    uniform_start : bool, default=False
        Leave log pi out of the first assignment, rather than take it from `start`.
    support : PreparedSupport, optional
        The shots, whose assignments are held fixed.

    Returns
    -------
    MixtureFit
        `converged` is False if anything still changed in the last iteration.
    """
    queries = _Queries(query, family, n_classes)
    components = _Components(family, n_classes, query.shape[1], queries.width, support)
    statistics = queries.statistics_of(start)
    objective: list[float] = []
    converged = False
    log_prior = np.zeros(n_classes)
    while len(objective) < max_iter:
        changed = components.maximize(statistics)
        previous_prior = log_prior
        if objective or not uniform_start:
            log_prior = weight * log_proportions(statistics.mass, len(query))
        queries.score(components, changed)
        if objective and not changed.size and np.allclose(log_prior, previous_prior, SAME, SAME):
            converged = True
            break
        statistics, reached = queries.assign(log_prior, hard)
        objective.append(
            float(log_prior @ statistics.mass)
            + weight * len(query) * partition_complexity(statistics.mass, len(query))
            - reached
            - components.support_likelihood
        )
    return MixtureFit(
        assignments=queries.take_assignments(log_prior, hard),
        parameters=components.parameters,
        log_prior=log_prior,
        objective=tuple(objective),
        iterations=len(objective),
        converged=converged,
    )


@dataclass
class _Components:
    """The classes: parameters, their natural form, and the statistics they were fitted to."""

    family: ComponentFamily
    n_classes: int
    n_features: int
    width: int
    support: PreparedSupport | None
    parameters: Float[np.ndarray, "class parameter"] = field(init=False)
    eta: Float[np.ndarray, "class statistic"] = field(init=False)
    log_normalizer: Float[np.ndarray, " class"] = field(init=False)

    def __post_init__(self) -> None:
        self.parameters = self.family.initial(self.n_classes, self.n_features)
        self.eta = np.zeros((self.n_classes, self.width))
        self.log_normalizer = np.zeros(self.n_classes)
        self._fitted = Statistics(
            np.full(self.n_classes, np.nan), np.zeros((self.n_classes, self.width))
        )
        self._support_terms = np.zeros(self.n_classes)

    @property
    def support_likelihood(self) -> float:
        """Log likelihood of the shots under their classes."""
        carrier = self.support.log_carrier if self.support else 0.0
        return float(self._support_terms.sum()) + carrier

    def maximize(self, query: Statistics) -> Int[np.ndarray, " changed"]:
        """Fit the classes whose statistics changed; return their indices."""
        support = self.support
        mass = query.mass if support is None else query.mass + support.statistics.mass
        # Only classes that hold query mass, or held some at their last fit, can have changed.
        candidates = np.flatnonzero((query.mass > 0.0) | (mass != self._fitted.mass))
        if support is None:
            return self._refit(candidates, query.of(candidates))
        # A class without shots has nothing to go back to: it stays what it was fitted to.
        left = (query.mass[candidates] == 0.0) & (support.statistics.mass[candidates] > 0.0)
        deserted, candidates = candidates[left], candidates[~left]
        self._reset_to_support(deserted, support)
        changed = self._refit(candidates, query.of(candidates) + support.statistics.of(candidates))
        self._support_terms[changed] = self._likelihood(changed, support.statistics)
        return np.union1d(deserted, changed)

    def _refit(
        self, candidates: Int[np.ndarray, " candidate"], statistics: Statistics
    ) -> Int[np.ndarray, " changed"]:
        """Fit the candidates that moved since their last fit; return their indices."""
        moved = np.flatnonzero(~_same(statistics, self._fitted.of(candidates)))
        changed: Int[np.ndarray, " changed"] = candidates[moved]
        if changed.size:
            statistics = statistics.of(moved)
            self._remember(changed, statistics)
            fitted = self.family.maximize(statistics, rows_of(self.parameters, changed))
            self.parameters[changed] = fitted
            self.eta[changed], self.log_normalizer[changed] = self.family.natural(fitted)
        return changed

    def _remember(self, classes: Int[np.ndarray, " changed"], statistics: Statistics) -> None:
        self._fitted.mass[classes] = statistics.mass
        self._fitted.total[classes] = statistics.total

    def _likelihood(
        self, classes: Int[np.ndarray, " changed"], statistics: Statistics
    ) -> Float[np.ndarray, " changed"]:
        """Log likelihood (changed,) of the statistics under their classes, up to the carrier."""
        data = statistics.of(classes)
        return log_likelihood(data, rows_of(self.eta, classes), self.log_normalizer[classes])

    def _reset_to_support(
        self, classes: Int[np.ndarray, " changed"], support: PreparedSupport
    ) -> None:
        """Reset classes without query mass to their support-only fit.

        Classes whose current support likelihood is higher stay: a class of one shot, whose
        likelihood has no maximum, improves with every iteration that it was fitted in.
        """
        self._remember(classes, support.statistics.of(classes))
        classes = classes[support.likelihood[classes] >= self._support_terms[classes]]
        self.parameters[classes] = rows_of(support.parameters, classes)
        self.eta[classes] = rows_of(support.eta, classes)
        self.log_normalizer[classes] = support.log_normalizer[classes]
        self._support_terms[classes] = support.likelihood[classes]


class _Queries:
    """The queries: their log densities under every class, in the precision they came in.

    A row's log densities are kept relative to its first largest one, so that float32 has digits
    to spare for the classes that compete.
    """

    def __init__(
        self, query: Float[np.ndarray, "query feature"], family: ComponentFamily, n_classes: int
    ) -> None:
        self._query, self._family, self._n_classes = query, family, n_classes
        self.width = family.statistic(query[:1]).shape[1]
        self._blocks = blocks(len(query), max(n_classes, self.width))
        self._densities: Float[np.ndarray, "query class"] | None = None
        self._largest = np.zeros(len(query))
        self._log_carrier = 0.0
        self._only_block = family.statistic(query) if len(self._blocks) == 1 else None
        self._total = np.zeros((n_classes, self.width))
        self._summed: Bool[np.ndarray, " class"] = np.zeros(n_classes, dtype=bool)

    def _statistic(self, rows: slice) -> Float[np.ndarray, "row statistic"]:
        if self._only_block is not None:
            return self._only_block
        return self._family.statistic(self._query[rows])

    def statistics_of(self, start: Float[np.ndarray, "query class"] | None) -> Statistics:
        """Statistics of given assignments; zero for None."""
        mass = np.zeros(self._n_classes)
        if start is not None:
            for rows in self._blocks:
                self._add(np.asarray(start[rows], dtype=np.float64), rows, mass)
        return Statistics(mass, self._total)

    def score(self, components: _Components, changed: Int[np.ndarray, " changed"]) -> None:
        """Recompute the log densities of the classes that changed (of all, the first time)."""
        if self._densities is None:
            self._densities = np.empty((len(self._query), self._n_classes), self._query.dtype)
            for rows in self._blocks:
                densities = self._statistic(rows) @ components.eta.T - components.log_normalizer
                self._largest[rows] = densities.max(1)
                self._densities[rows] = densities - self._largest[rows, np.newaxis]
                self._log_carrier += float(self._family.log_carrier(self._query[rows]).sum())
        elif changed.size:
            eta, log_normalizer = (
                rows_of(components.eta, changed),
                components.log_normalizer[changed],
            )
            for rows in self._blocks:
                densities = self._statistic(rows) @ eta.T - log_normalizer
                self._densities[rows, changed] = densities - self._largest[rows, np.newaxis]

    def assign(
        self, log_prior: Float[np.ndarray, " class"], hard: bool
    ) -> tuple[Statistics, float]:
        """Assign every query; return the statistics of that, and the maximum that was reached.

        The statistics hold this object's own array of sums: they are valid until the next call.
        """
        mass = np.zeros(self._n_classes)
        self._total[self._summed] = 0.0
        self._summed[:] = False
        reached = self._log_carrier + float(self._largest.sum())
        for rows in self._blocks:
            assignments, maximum = assign(self._scores(rows, log_prior), hard)
            reached += maximum
            self._add(assignments, rows, mass)
        return Statistics(mass, self._total), reached

    def _scores(
        self, rows: slice, log_prior: Float[np.ndarray, " class"]
    ) -> Float[np.ndarray, "row class"]:
        assert self._densities is not None
        return np.add(self._densities[rows], log_prior, dtype=np.float64)

    def _add(
        self,
        assignments: Float[np.ndarray, "row class"],
        rows: slice,
        mass: Float[np.ndarray, " class"],
    ) -> None:
        part = assignments.sum(0)
        mass += part
        live = np.flatnonzero(part)
        self._total[live] += assignments[:, live].T @ self._statistic(rows)
        self._summed[live] = True

    def take_assignments(
        self, log_prior: Float[np.ndarray, " class"], hard: bool
    ) -> Float[np.ndarray, "query class"]:
        """Return the assignments (query, class), written over the log densities to save memory."""
        assert self._densities is not None
        for rows in self._blocks:
            self._densities[rows], _ = assign(self._scores(rows, log_prior), hard)
        return self._densities


def _same(new: Statistics, old: Statistics) -> Bool[np.ndarray, " class"]:
    """True (class,) where the statistics are the same; NaN (never fitted) is never the same."""
    same: Bool[np.ndarray, " class"] = np.abs(new.mass - old.mass) <= SAME * np.abs(old.mass)
    close = np.flatnonzero(same)  # few, mostly: only for them are the wide rows compared
    new_rows, old_rows = rows_of(new.total, close), rows_of(old.total, close)
    distance = np.abs(new_rows - old_rows).max(1, initial=0.0)
    same[close] = distance <= SAME * np.abs(old_rows).max(1, initial=0.0)
    return same
