"""Nearest neighbors in batches too large to compare every pair: search in cells of k-means.

Images are grouped around centers (k-means on a sample of them, squared distance); the neighbors of
an image are looked for in its own cell and in those nearest to it, among some four thousand others
whatever the size of the batch. How many of the true neighbors are found so is measured on a sample,
and said in the trace of the method.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int

from transduce.methods.anchored_passes import AnchoredBatch
from transduce.methods.anchored_rows import Rows
from transduce.methods.neighbors import Neighbors, nearest_neighbors
from transduce.simplex.passes import Passes
from transduce.simplex.probabilities import blocks

EXACT_UP_TO = 1 << 14  # images; every pair of fewer is compared
CELL_ROWS = 512  # images of a cell, on average
MOST_CELLS = 2048
CANDIDATES = 1 << 12  # images that an image is compared with, from the nearest cells
SAMPLE_PER_CELL = 48  # images that k-means is fitted to
ROUNDS = 6  # of k-means
ROWS_AT_ONCE, OTHERS_AT_ONCE = 256, 1024  # so that their cosines stay in the cache
CELLS_AT_ONCE = 8  # a job
TESTED = 256  # images whose neighbors are compared with the true ones

Places = Int[np.ndarray, " row"]


@dataclass(frozen=True)
class Cells:
    """Centers of the cells, and the images of each."""

    centers: Rows
    members: Places  # images, those of a cell next to each other
    starts: Int[np.ndarray, " bound"]  # of each cell in `members`; the last is their number

    def of(self, cell: int) -> Places:
        """The images of a cell."""
        return self.members[self.starts[cell] : self.starts[cell + 1]]

    def candidates(self, cell: int) -> Places:
        """The images that those of a cell are compared with: from it, and then the nearest."""
        affinity = _affinity(self.centers[cell : cell + 1], self.centers)[0]
        affinity[cell] = np.inf
        near = np.argsort(-affinity, kind="stable")
        held = np.cumsum(np.diff(self.starts)[near])
        searched = near[: 1 + int(np.searchsorted(held, CANDIDATES))]
        return np.concatenate([self.of(other) for other in searched])[:CANDIDATES]


def batch_neighbors(batch: AnchoredBatch, count: int, run: Passes) -> tuple[Neighbors, float]:
    """The `count` nearest others of every query and shot, and the share of true ones among them.

    Parameters
    ----------
    batch : AnchoredBatch
        The rows; its middle is known.
    count : int
        Neighbors of each row.
    run : Passes
        Who does the work.
    """
    n_rows = batch.n_queries + len(batch.shot_labels)
    if n_rows <= EXACT_UP_TO:
        every = compared(batch, np.arange(n_rows))
        return nearest_neighbors(every, every, count, skip_self=True), 1.0
    cells = _find_cells(batch, n_rows, run)
    indices = np.full((n_rows, count), -1, np.int32)
    cosines = np.zeros((n_rows, count), np.float32)
    for places, found in _in_jobs(cells, batch, count, run):
        indices[places], cosines[places] = found.indices, found.cosines
    neighbors = Neighbors(indices, cosines)
    return neighbors, _recall(batch, neighbors, n_rows, run)


def compared(batch: AnchoredBatch, rows: Places) -> Rows:
    """The unit rows of queries and, after them, shots."""
    queries = rows < batch.n_queries
    if queries.all():
        return batch.rows.compared(rows)
    taken = np.empty((len(rows), batch.compared_shots.shape[1]), np.float32)
    taken[queries] = batch.rows.compared(rows[queries])
    taken[~queries] = batch.compared_shots[rows[~queries] - batch.n_queries]
    return taken


def _find_cells(batch: AnchoredBatch, n_rows: int, run: Passes) -> Cells:
    count = min(MOST_CELLS, -(-n_rows // CELL_ROWS))
    sample = np.unique(np.linspace(0, n_rows - 1, SAMPLE_PER_CELL * count).astype(np.int64))
    centers = _k_means(compared(batch, sample) - batch.middle, count)
    parts = list(run(cells_of_chunk, batch, centers, batch.chunks()))
    shots = batch.compared_shots - batch.middle
    cell = np.concatenate([*parts, _nearest_center(shots, centers)])
    members = np.argsort(cell, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=count))])
    return Cells(centers, members, starts)


def _k_means(rows: Rows, count: int) -> Rows:
    """Centers of `count` groups of rows, from as many rows drawn with a fixed seed."""
    centers = rows[np.random.default_rng(0).choice(len(rows), count, replace=False)]
    for _ in range(ROUNDS):
        cell = _nearest_center(rows, centers)
        order = np.argsort(cell, kind="stable")
        present, first = np.unique(cell[order], return_index=True)
        sums = np.add.reduceat(rows[order], first, axis=0)
        sizes = np.diff(np.append(first, len(rows)))
        centers = centers.copy()  # a group without rows keeps its center
        centers[present] = sums / sizes[:, np.newaxis].astype(np.float32)
    return centers


def _affinity(rows: Rows, centers: Rows) -> Float32[np.ndarray, "row center"]:
    """Minus half the squared distance, up to a constant of each row."""
    affinity = rows @ centers.T
    affinity -= np.float32(0.5) * np.einsum("ij,ij->i", centers, centers)
    return affinity


def _nearest_center(rows: Rows, centers: Rows) -> Places:
    nearest = np.empty(len(rows), np.int32)
    for part in blocks(len(rows), 4 * len(centers)):
        nearest[part] = _affinity(rows[part], centers).argmax(1)
    return nearest


def cells_of_chunk(batch: AnchoredBatch, centers: Rows, chunk: slice) -> Places:
    """The nearest center of each image of a chunk."""
    return _nearest_center(batch.compared(chunk), centers)


def _in_jobs(
    cells: Cells, batch: AnchoredBatch, count: int, run: Passes
) -> Iterator[tuple[Places, Neighbors]]:
    starts = range(0, len(cells.centers), CELLS_AT_ONCE)
    jobs = [slice(a, min(a + CELLS_AT_ONCE, len(cells.centers))) for a in starts]
    for found in run(neighbors_of_cells, batch, (cells, count), jobs):
        yield from found


def neighbors_of_cells(
    batch: AnchoredBatch, shared: tuple[Cells, int], job: slice
) -> list[tuple[Places, Neighbors]]:
    """The neighbors of the images of some cells."""
    cells, count = shared
    return [
        _neighbors_of_cell(batch, cells, cell, count)
        for cell in range(job.start, job.stop)
        if len(cells.of(cell))
    ]


def _neighbors_of_cell(
    batch: AnchoredBatch, cells: Cells, cell: int, count: int
) -> tuple[Places, Neighbors]:
    own, others = cells.of(cell), cells.candidates(cell)
    among = compared(batch, others)
    # The images of the cell come first among the candidates, and are all of them if they are many.
    rows = among[: len(own)] if len(own) <= len(others) else compared(batch, own)
    return own, best_of(rows, own, among, others, count)


def best_of(rows: Rows, places: Places, among: Rows, others: Places, count: int) -> Neighbors:
    """The largest cosines of rows, whose places are known, among others; not with themselves.

    Where there are fewer others than asked for, the last are the row itself with the cosine 0.
    """
    indices = np.repeat(places[:, np.newaxis], count, 1).astype(np.int32)
    largest = np.zeros((len(rows), count), np.float32)
    _, own, itself = np.intersect1d(places, others, assume_unique=True, return_indices=True)
    column = np.full(len(rows), -1)
    column[own] = itself
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, len(rows)))
        found = [
            _best_of_block(
                rows[part],
                column[part] - first,
                among[first : first + OTHERS_AT_ONCE],
                others[first : first + OTHERS_AT_ONCE],
                count,
            )
            for first in range(0, len(others), OTHERS_AT_ONCE)
        ]
        best = _merged(found, count)
        there = np.isfinite(best.cosines)
        indices[part][there], largest[part][there] = best.indices[there], best.cosines[there]
    return Neighbors(indices, largest)


def _best_of_block(
    rows: Rows, itself: Places, among: Rows, others: Places, count: int
) -> Neighbors:
    cosines = rows @ among.T
    every = np.arange(len(rows))
    here = np.flatnonzero((itself >= 0) & (itself < len(others)))
    cosines[here, itself[here]] = -np.inf
    indices = np.empty((len(rows), count), np.int32)
    largest = np.empty((len(rows), count), np.float32)
    for rank in range(count):
        best = cosines.argmax(1)
        indices[:, rank], largest[:, rank] = others[best], cosines[every, best]
        cosines[every, best] = -np.inf
    return Neighbors(indices, largest)


def _recall(batch: AnchoredBatch, neighbors: Neighbors, n_rows: int, run: Passes) -> float:
    """The share of true neighbors among those found, of a sample of the queries."""
    tested = np.unique(np.linspace(0, batch.n_queries - 1, TESTED).astype(np.int64))
    count = neighbors.indices.shape[1]
    parts = list(run(best_in_chunk, batch, (tested, count), batch.chunks()))
    if len(batch.shot_labels):
        shots = np.arange(batch.n_queries, n_rows)
        parts.append(best_of(compared(batch, tested), tested, batch.compared_shots, shots, count))
    true = _merged(parts, count)
    # A neighbor as near as the last of the true ones is as good as it.
    least = true.cosines[:, -1:] - np.float32(1e-6)
    return float((neighbors.cosines[tested] >= least).mean())


def best_in_chunk(batch: AnchoredBatch, shared: tuple[Places, int], chunk: slice) -> Neighbors:
    """The nearest images of a chunk to a few rows."""
    tested, count = shared
    others = np.arange(chunk.start, chunk.stop)
    among, rows = batch.rows.compared(others), batch.rows.compared(tested)
    return best_of(rows, tested, among, others, count)


def _merged(parts: Sequence[Neighbors], count: int) -> Neighbors:
    indices = np.concatenate([part.indices for part in parts], 1)
    cosines = np.concatenate([part.cosines for part in parts], 1)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    return Neighbors(np.take_along_axis(indices, order, 1), np.take_along_axis(cosines, order, 1))
