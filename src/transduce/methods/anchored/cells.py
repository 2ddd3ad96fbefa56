"""Nearest neighbors in batches too large to compare every pair: search in cells.

Every image has a cell, and is compared with the images of those cells that it is nearest to, its
own among them: with some three thousand others, whatever the size of the batch. Cells are groups
around centers (k-means on a sample of the images, squared distance). Of very many classes, of which
each has few images, they are instead the classes: the cell of an image is the class that the text
finds likeliest, and it is compared with images of its likeliest classes. How many of the true
neighbors are found so is measured on a sample, and said in the trace of the method.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float32, Int

from transduce.methods.anchored.batch import AnchoredBatch, Rows
from transduce.methods.anchored.columns import first_classes
from transduce.methods.neighbors import Neighbors, nearest_neighbors
from transduce.simplex.passes import Passes
from transduce.simplex.probabilities import blocks

EXACT_UP_TO = 1 << 14  # images; every pair of fewer is compared
CELL_ROWS = 512  # images of a cell, on average
MOST_CELLS = 2048
CANDIDATES = 3 << 10  # images that an image is compared with, from the nearest cells
SAMPLE_PER_CELL = 48  # images that k-means is fitted to
ROUNDS = 6  # of k-means
ROWS_AT_ONCE, OTHERS_AT_ONCE = 256, 1024  # so that their cosines stay in the cache
LOOKING_AT_ONCE = 1 << 13  # images, at least that many a job
MOST_JOBS = 1 << 10
TESTED = 256  # images whose neighbors are compared with the true ones

Indices = Int[np.ndarray, " row"]


@dataclass(frozen=True)
class Lists:
    """Some images of each cell, those of a cell next to each other."""

    images: Indices
    starts: Int[np.ndarray, " bound"]  # of each cell in `images`; the last is their number

    @classmethod
    def of(cls, cells: Int[np.ndarray, "row cell"], count: int) -> "Lists":
        """The images by their cells, of which each may have several."""
        order = np.argsort(cells, axis=None, kind="stable")
        order //= cells.shape[1]
        starts = np.concatenate([[0], np.cumsum(np.bincount(cells.ravel(), minlength=count))])
        return cls(order.astype(np.int32), starts)

    def at(self, cell: int) -> Indices:
        """The images of a cell."""
        return self.images[self.starts[cell] : self.starts[cell + 1]]


@dataclass(frozen=True)
class Cells:
    """The images of each cell, and those that look for neighbors in it."""

    members: Lists
    looking: Lists

    @classmethod
    def of(cls, cells: Int[np.ndarray, "row cell"], count: int) -> "Cells":
        """Each image is of the first of its cells, and looks in all of them."""
        return cls(Lists.of(cells[:, :1], count), Lists.of(cells, count))

    def used(self) -> Indices:
        """The cells that have images."""
        return np.flatnonzero(np.diff(self.members.starts))


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
    indices = np.repeat(np.arange(n_rows, dtype=np.int32)[:, np.newaxis], count, 1)
    cosines = np.full((n_rows, count), -np.inf, np.float32)
    for chosen, found in _in_jobs(cells, batch, count, run):
        best = _merged([Neighbors(indices[chosen], cosines[chosen]), found], count)
        indices[chosen], cosines[chosen] = best
    # Where there are fewer others than asked for, the last are the row itself with the cosine 0.
    none = ~np.isfinite(cosines)
    indices[none], cosines[none] = np.nonzero(none)[0], 0.0
    neighbors = Neighbors(indices, cosines)
    return neighbors, _recall(batch, neighbors, n_rows, run)


def compared(batch: AnchoredBatch, rows: Indices) -> Rows:
    """The unit rows of queries and, after them, shots."""
    queries = rows < batch.n_queries
    if queries.all():
        return batch.rows.compared(rows)
    taken = np.empty((len(rows), batch.compared_shots.shape[1]), np.float32)
    taken[queries] = batch.rows.compared(rows[queries])
    taken[~queries] = batch.compared_shots[rows[~queries] - batch.n_queries]
    return taken


def _find_cells(batch: AnchoredBatch, n_rows: int, run: Passes) -> Cells:
    if batch.candidates is None:
        count = min(MOST_CELLS, -(-n_rows // CELL_ROWS))
        looked_in = _cells_looked_in(n_rows, count, count)
        sample = np.unique(np.linspace(0, n_rows - 1, SAMPLE_PER_CELL * count).astype(np.int64))
        centers = _k_means(compared(batch, sample) - batch.middle, count)
        parts = list(run(cells_of_chunk, batch, (centers, looked_in), batch.chunks()))
        shots = _nearest_centers(batch.compared_shots - batch.middle, centers, looked_in)
    else:
        count = batch.n_classes
        looked_in = _cells_looked_in(n_rows, count, batch.candidates.shape[1])
        parts = list(run(classes_of_chunk, batch, looked_in, batch.chunks()))
        shots = first_classes(batch.shots @ batch.texts.T, looked_in).astype(np.int32)
    cells = np.concatenate([*parts, shots])
    # Cells near many images are large ones: fewer of them hold as many others.
    sizes = np.bincount(cells[:, 0], minlength=count)
    held = np.cumsum([sizes[column].mean() for column in cells.T])
    return Cells.of(cells[:, : max(1, int(np.searchsorted(held, CANDIDATES, "right")))], count)


def _cells_looked_in(n_rows: int, count: int, most: int) -> int:
    """How many cells of an image hold `CANDIDATES` others at most: if all are of one size."""
    return min(max(1, CANDIDATES * count // n_rows), most)


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


def _nearest_center(rows: Rows, centers: Rows) -> Indices:
    nearest = np.empty(len(rows), np.int32)
    for part in blocks(len(rows), 4 * len(centers)):
        nearest[part] = _affinity(rows[part], centers).argmax(1)
    return nearest


def _nearest_centers(rows: Rows, centers: Rows, count: int) -> Int[np.ndarray, "row cell"]:
    """The nearest centers of each row, nearest first."""
    nearest = np.empty((len(rows), count), np.int32)
    for part in blocks(len(rows), 4 * len(centers)):
        nearest[part] = first_classes(_affinity(rows[part], centers), count)
    return nearest


def cells_of_chunk(
    batch: AnchoredBatch, shared: tuple[Rows, int], chunk: slice
) -> Int[np.ndarray, "row cell"]:
    """The nearest centers of each image of a chunk, nearest first."""
    return _nearest_centers(batch.compared(chunk), *shared)


def classes_of_chunk(batch: AnchoredBatch, count: int, chunk: slice) -> Int[np.ndarray, "row cell"]:
    """The likeliest classes of each image of a chunk, likeliest first."""
    columns, images = batch.columns(chunk), batch.rows.images(chunk)
    table = columns.table(batch.texts, len(images))
    found = np.empty((len(images), count), np.int32)
    for part in blocks(len(images), 4 * columns.width):
        best = first_classes(columns.products(images, table, part), count)
        found[part] = columns.classes(best, part)
    return found


def _in_jobs(
    cells: Cells, batch: AnchoredBatch, count: int, run: Passes
) -> Iterator[tuple[Indices, Neighbors]]:
    used = cells.used()
    pairs = np.cumsum(np.diff(cells.looking.starts)[used])
    each = max(1, int(pairs[-1]) // MOST_JOBS, LOOKING_AT_ONCE)
    ends = np.unique(np.searchsorted(pairs, np.arange(each, pairs[-1] + each, each)) + 1)
    bounds = np.concatenate([[0], np.minimum(ends, len(used))])
    jobs = [slice(int(a), int(b)) for a, b in pairwise(bounds) if b > a]
    for found in run(neighbors_in_cells, batch, (cells, used, count), jobs):
        yield from found


def neighbors_in_cells(
    batch: AnchoredBatch, shared: tuple[Cells, Indices, int], job: slice
) -> list[tuple[Indices, Neighbors]]:
    """The nearest images of some cells, for those that look there."""
    cells, used, count = shared
    found = []
    for cell in used[job]:
        others, looking = cells.members.at(cell)[:CANDIDATES], cells.looking.at(cell)
        among = compared(batch, others)
        for start in range(0, len(looking), LOOKING_AT_ONCE):
            chosen = looking[start : start + LOOKING_AT_ONCE]
            best = best_of(compared(batch, chosen), chosen, among, others, count)
            found.append((chosen, best))
    return found


def best_of(rows: Rows, chosen: Indices, among: Rows, others: Indices, count: int) -> Neighbors:
    """The largest cosines of rows, whose indices are known, among others; not with themselves.

    Where there are fewer others than asked for, the cosine of the last is minus infinity.
    """
    indices = np.zeros((len(rows), count), np.int32)
    largest = np.empty((len(rows), count), np.float32)
    _, own, itself = np.intersect1d(chosen, others, assume_unique=True, return_indices=True)
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
        indices[part], largest[part] = found[0] if len(found) == 1 else _merged(found, count)
    return Neighbors(indices, largest)


def _best_of_block(
    rows: Rows, itself: Indices, among: Rows, others: Indices, count: int
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


def best_in_chunk(batch: AnchoredBatch, shared: tuple[Indices, int], chunk: slice) -> Neighbors:
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
