"""The classes of a mixture: fitted to sufficient statistics, and only where these changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

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


@dataclass
class Components:
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

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the next fit depends on, by name; the arrays stay this object's."""
        return {
            "parameters": self.parameters,
            "eta": self.eta,
            "log_normalizer": self.log_normalizer,
            "fitted_mass": self._fitted.mass,
            "fitted_total": self._fitted.total,
            "support_terms": self._support_terms,
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `arrays` returned."""
        self.parameters, self.eta = arrays["parameters"], arrays["eta"]
        self.log_normalizer = arrays["log_normalizer"]
        self._fitted = Statistics(arrays["fitted_mass"], arrays["fitted_total"])
        self._support_terms = arrays["support_terms"]

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


def _same(new: Statistics, old: Statistics) -> Bool[np.ndarray, " class"]:
    """True (class,) where the statistics are the same; NaN (never fitted) is never the same."""
    same: Bool[np.ndarray, " class"] = np.abs(new.mass - old.mass) <= SAME * np.abs(old.mass)
    close = np.flatnonzero(same)  # few, mostly: only for them are the wide rows compared
    new_rows, old_rows = rows_of(new.total, close), rows_of(old.total, close)
    distance = np.abs(new_rows - old_rows).max(1, initial=0.0)
    same[close] = distance <= SAME * np.abs(old_rows).max(1, initial=0.0)
    return same
