"""What the EM loop does to a chunk of the queries: assign them, and sum up.

Log densities and sufficient statistics are formed block by block, so that nothing grows with
query x class but what is kept of batches that fit in memory. Each function takes the batch, what
the pass shares with every chunk, and a chunk; the loop adds the sums up in the order of the chunks.
So a chunk may be worked on by a thread, by another machine, or twice, and the answer is the same to
the bit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from transduce.mixtures.assignment import assign
from transduce.mixtures.family import Statistics, rows_of
from transduce.mixtures.queries import MixtureBatch, Statistic
from transduce.mixtures.scores import CROWDED, PerClass, Scores, Step, scores_of
from transduce.simplex.threads import a_few_at_a_time

LARGE = 1 << 24  # multiplications; smaller products are sooner done than looked at


@dataclass(frozen=True)
class PartSums:
    """Sums over some queries, of the classes that have any of them."""

    classes: Int[np.ndarray, " live"]
    mass: Float[np.ndarray, " live"]
    total: Float[np.ndarray, "live statistic"]
    entries: int  # assignments that are not zero
    reached: float = 0.0  # the maximum of the assignments' objective
    clusters: Int[np.ndarray, " row"] | None = None  # the largest class of each query


class ClassSums:
    """Sums of every class; `add` adds those of a part to these arrays."""

    def __init__(self, n_classes: int, width: int) -> None:
        self.mass, self.total = np.zeros(n_classes), np.zeros((n_classes, width))
        self.entries, self.reached = 0, 0.0
        self._touched: Bool[np.ndarray, " class"] = np.zeros(n_classes, dtype=bool)
        self._empty = True

    def clear(self) -> None:
        """Begin again at zero."""
        self.entries, self.reached = 0, 0.0
        self.mass = np.zeros_like(self.mass)
        self.total[self._touched] = 0.0
        self._touched[:] = False
        self._empty = True

    def add(self, part: PartSums) -> None:
        """Add the sums of a part."""
        if self._empty:
            self.mass[part.classes] = part.mass
            self._adopt(part)
        else:
            self.mass[part.classes] += part.mass
            self.total[part.classes] += part.total
        self._empty = False
        self._touched[part.classes] = True
        self.entries += part.entries
        self.reached += part.reached

    def _adopt(self, part: PartSums) -> None:
        """Take the first sums as they are, rather than add them to zeros."""
        if len(part.classes) == len(self.mass) and part.total.flags.writeable:  # not Ray's own
            self.total = part.total
        else:
            self.total[part.classes] = part.total

    def statistics(self) -> Statistics:
        """The sums, which stay this object's: they are valid until it is cleared."""
        return Statistics(self.mass, self.total)

    def part(self, clusters: Int[np.ndarray, " row"] | None) -> PartSums:
        """The sums as those of a part."""
        live = np.flatnonzero(self._touched)
        total = rows_of(self.total, live)
        return PartSums(live, self.mass[live], total, self.entries, self.reached, clusters)


def start_chunk(batch: MixtureBatch, shared: None, chunk: slice) -> PartSums:
    """The sums of the first assignments of a chunk."""
    assert batch.start is not None
    start = batch.start

    def work(rows: slice) -> PartSums:
        features = batch.queries.rows(rows)
        first = features if start is batch.queries else start.rows(rows)
        return _sums(first.astype(np.float64, copy=False), batch.statistic(features))

    return _added(batch, chunk, work)


def assign_and_sum(batch: MixtureBatch, step: Step, chunk: slice) -> PartSums:
    """Assign the queries of a chunk, and return the sums of that."""

    def work(rows: slice) -> PartSums:
        features = batch.queries.rows(rows)
        statistic = batch.statistic(features)
        scores, rest = scores_of(batch, step, rows, features, statistic)
        clusters = scores.argmax(1)
        assignments, maximum = assign(scores, clusters, hard=batch.hard)
        part = _sums(assignments, statistic)
        return replace(part, reached=maximum + float(rest.sum()), clusters=clusters)

    return _added(batch, chunk, work)


def assignments_chunk(batch: MixtureBatch, log_prior: PerClass, chunk: slice) -> None:
    """Write the assignments of a chunk over its kept log densities, to save memory."""
    assert batch.kept is not None
    densities = batch.kept.densities

    def work(rows: slice) -> None:
        scores = np.add(densities[rows], log_prior, dtype=np.float64)
        densities[rows], _ = assign(scores, scores.argmax(1), hard=batch.hard)

    list(a_few_at_a_time(work, batch.blocks(chunk)))


def _added(batch: MixtureBatch, chunk: slice, work: Callable[[slice], PartSums]) -> PartSums:
    """The sums over the blocks of a chunk, added in their order."""
    if len(parts := batch.blocks(chunk)) == 1:
        return work(parts[0])
    sums, clusters = ClassSums(batch.n_classes, batch.width), []
    for part in a_few_at_a_time(work, parts):
        sums.add(part)
        clusters += [] if part.clusters is None else [part.clusters]
    return sums.part(np.concatenate(clusters) if clusters else None)


def _sums(assignments: Scores, statistic: Statistic) -> PartSums:
    mass = assignments.sum(0)
    live = np.flatnonzero(mass)
    size, entries = len(assignments) * len(live), int(np.count_nonzero(assignments))
    if size * statistic.shape[1] < LARGE or entries > CROWDED * size:
        total = assignments[:, live].T @ statistic
    else:
        total = rows_of(_sparse_sums(assignments, statistic), live)
    return PartSums(live, mass[live], total, entries)


def _sparse_sums(assignments: Scores, statistic: Statistic) -> Float[np.ndarray, "class statistic"]:
    """Sums of T(x) in every class, from the few assignments that are not zero."""
    from scipy.sparse import csr_array  # here, because small batches never need it

    entries = np.flatnonzero(assignments)
    n_rows, n_classes = assignments.shape
    ends = np.searchsorted(entries, n_classes * np.arange(n_rows + 1))
    stored = csr_array(
        (assignments.ravel()[entries], (entries % n_classes).astype(np.int32), ends),
        shape=assignments.shape,
    )
    return np.asarray(stored.T @ statistic)
