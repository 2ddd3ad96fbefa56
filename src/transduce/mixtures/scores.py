"""Scores of queries under every class: log p(x | theta) + w log pi, by one product a block.

Float32 multiplies twice as fast as float64, but a log density has more digits than it holds. So
once few classes compete for a query, float32 only says which: the scores of these are computed
again in float64. The product is one of differences, T(x) less its mean with eta less its mean,
since what is the same for all classes would take the digits.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from transduce.mixtures.components import Components
from transduce.mixtures.family import rows_of
from transduce.mixtures.queries import Features, MixtureBatch, Statistic

COMPETING = 72.0  # below the largest score; beyond 69 an assignment is negligible, 3 for rounding
CROWDED = 1 / 16  # share of entries; with more of them, whole products are sooner
ENTRIES_AT_ONCE = 512

PerClass = Float[np.ndarray, " class"]
PerRow = Float[np.ndarray, " row"]
Scores = Float[np.ndarray, "row class"]


@dataclass(frozen=True)
class SingleTable:
    """Some classes as a table in float32.

    log p(x | theta_k) = (T(x) - center) . (eta_k - mean) + offset_k + (T(x) - center) . mean
    """

    table: Float[np.ndarray, "column statistic"]
    offset: Float[np.ndarray, " column"]
    mean: Float[np.ndarray, " statistic"]


@dataclass(frozen=True)
class Step:
    """What a pass knows of the classes, shared with all chunks."""

    eta: Float[np.ndarray, "class statistic"]
    log_normalizer: PerClass
    log_prior: PerClass
    columns: Int[np.ndarray, " column"]  # the classes whose densities are not kept
    table: SingleTable | None  # of these classes, if float32 is to say who competes
    single: bool
    first: bool  # nothing is kept yet

    @classmethod
    def of(
        cls,
        batch: MixtureBatch,
        components: Components,
        columns: Int[np.ndarray, " column"],
        log_prior: PerClass,
        *,
        few_compete: bool,
        first: bool,
    ) -> "Step":
        """The classes as they are now fitted; `few_compete` for a query, as far as is known."""
        eta, normalizer, center = components.eta, components.log_normalizer, batch.center
        single = few_compete and center is not None
        table = None
        if center is not None and single and columns.size:
            changed = rows_of(eta, columns)
            mean = changed.mean(0)
            offset = changed @ center - normalizer[columns]
            table = SingleTable((changed - mean).astype(np.float32), offset, mean)
        return cls(eta, normalizer, log_prior, columns, table, single, first)


def scores_of(
    batch: MixtureBatch, step: Step, rows: slice, features: Features, statistic: Statistic
) -> tuple[Scores, PerRow]:
    """Scores (row, class), and what was taken from each row of them."""
    kept = batch.kept
    if kept is None:
        scores, taken = _log_densities(batch, step, statistic)
        scores += step.log_prior
        if step.single:
            _settle(scores, taken, step, statistic)
        return scores, taken + batch.family.log_carrier(features)
    # Again, if all are new: float32 has most digits near the largest as it is now.
    if step.first or (step.single and len(step.columns) == batch.n_classes):
        densities, taken = _log_densities(batch, step, statistic)
        largest = densities.max(1)
        densities -= largest[:, np.newaxis]
        kept.densities[rows], kept.largest[rows] = densities, largest + taken
        kept.log_carrier[rows] = batch.family.log_carrier(features)
    elif step.columns.size:
        densities, taken = _log_densities(batch, step, statistic)
        densities += (taken - kept.largest[rows])[:, np.newaxis]
        kept.densities[rows, step.columns] = densities
    scores = np.add(kept.densities[rows], step.log_prior, dtype=np.float64)
    if step.single:
        row, column = _settle(scores, kept.largest[rows], step, statistic)
        kept.densities[rows][row, column] = scores[row, column] - step.log_prior[column]
    return scores, kept.largest[rows] + kept.log_carrier[rows]


def _log_densities(
    batch: MixtureBatch, step: Step, statistic: Statistic
) -> tuple[Float[np.ndarray, "row column"], PerRow]:
    """Log densities of the columns, but for the carrier, and what was taken from each row."""
    if step.table is None or batch.center is None:
        densities = statistic @ rows_of(step.eta, step.columns).T
        densities -= step.log_normalizer[step.columns]
        return densities, np.zeros(len(statistic))
    centered = statistic - batch.center
    products = centered.astype(np.float32) @ step.table.table.T
    return np.add(products, step.table.offset, dtype=np.float64), centered @ step.table.mean


def _settle(
    scores: Scores, taken: PerRow, step: Step, statistic: Statistic
) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Compute again, in float64, the scores of classes that compete for a query; return which."""
    competing = scores > (scores.max(1) - COMPETING)[:, np.newaxis]
    counts = np.count_nonzero(competing, axis=1)
    competing[counts == 1] = False
    if counts.sum() > CROWDED * scores.size:
        np.matmul(statistic, step.eta.T, out=scores)
        scores += step.log_prior - step.log_normalizer
        scores -= taken[:, np.newaxis]
        every = np.divmod(np.arange(scores.size), scores.shape[1])
        return every[0], every[1]
    row, column = np.divmod(np.flatnonzero(competing), scores.shape[1])
    for first in range(0, len(row), ENTRIES_AT_ONCE):
        n, k = row[first : first + ENTRIES_AT_ONCE], column[first : first + ENTRIES_AT_ONCE]
        density = np.einsum("ij,ij->i", statistic[n], step.eta[k]) - step.log_normalizer[k]
        scores[n, k] = density + step.log_prior[k] - taken[n]
    return row, column
