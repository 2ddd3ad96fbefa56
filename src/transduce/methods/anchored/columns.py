"""The classes that `Anchored` scores an image for: all of them, or of very many its likeliest.

With more than `MOST_DENSE` classes each image is scored for the `CANDIDATES` that the text finds
likeliest, once for all steps; all others have no share of it. docs/scaling.md says what that
changes.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float32, Float64, Int

from transduce.mixtures.within import Sparse

MOST_DENSE = 4096  # classes; with more, every image has candidates
CANDIDATES = 64
PAYS_FROM = 4  # rows a class; of fewer, turning the table over takes longer than it saves
GATHERED = 1 << 19  # numbers of a table that are gathered at a time: two megabytes

Rows = Float32[np.ndarray, "row feature"]
Scores = Float32[np.ndarray, "row column"]
Vector = Float32[np.ndarray, " class"]


class Columns(Protocol):
    """What the columns of the scores of a chunk stand for."""

    @property
    def width(self) -> int:
        """Number of columns."""
        ...

    def table(self, of_classes: Rows, n_rows: int) -> Rows:
        """A table of the classes as `products` wants it, for so many rows."""
        ...

    def products(self, rows: Rows, table: Rows, part: slice) -> Scores:
        """Return x . t of the rows of a part and the classes of their columns."""
        ...

    def of(self, vector: Vector, part: slice) -> Float32[np.ndarray, "..."]:
        """A number of each class, in the columns of the rows of a part."""
        ...

    def add(self, scores: Scores, entries: Sparse, values: np.ndarray, part: slice) -> Scores:
        """Add values at the stored (row, class) entries of a part to `scores`; return `scores`."""
        ...

    def taken(self, scores: Scores, entries: Sparse, part: slice) -> Float32[np.ndarray, " entry"]:
        """The scores at the stored (row, class) entries of a part; 0 where there is no column."""
        ...

    def mass(
        self, z: Scores, weights: Float32[np.ndarray, " row"], part: slice
    ) -> Float64[np.ndarray, " class"]:
        """The sum of each class over the rows, each with its weight."""
        ...

    def classes(
        self, columns: Int[np.ndarray, "row chosen"], part: slice
    ) -> Int[np.ndarray, "row chosen"]:
        """The classes of some columns of each row."""
        ...

    def in_classes(self, stored: Sparse, part: slice) -> Sparse:
        """Entries (row, column) as entries (row, class)."""
        ...


def _stored(entries: Sparse, part: slice) -> tuple[Int[np.ndarray, " entry"], slice]:
    """The row within a part of each stored entry, and where the entries are."""
    here = slice(int(entries.indptr[part.start]), int(entries.indptr[part.stop]))
    counts = np.diff(entries.indptr[part.start : part.stop + 1])
    return np.repeat(np.arange(len(counts)), counts), here


@dataclass(frozen=True)
class AllClasses:
    """A column for every class."""

    width: int

    def table(self, of_classes: Rows, n_rows: int) -> Rows:
        """The classes as columns, copied to be contiguous where products are then faster."""
        if n_rows < PAYS_FROM * len(of_classes):
            return of_classes.T
        return np.ascontiguousarray(of_classes.T)

    def products(self, rows: Rows, table: Rows, part: slice) -> Scores:
        """Return x . t of the rows of a part and all classes."""
        return rows[part] @ table

    def of(self, vector: Vector, part: slice) -> Vector:
        """The numbers of the classes, the same for every row."""
        return vector

    def add(self, scores: Scores, entries: Sparse, values: np.ndarray, part: slice) -> Scores:
        """Add values at the stored (row, class) entries of a part to `scores`; return `scores`."""
        scores.ravel()[self._flat(entries, part)] += values
        return scores

    def taken(self, scores: Scores, entries: Sparse, part: slice) -> Float32[np.ndarray, " entry"]:
        """The scores at the stored (row, class) entries of a part."""
        return scores.ravel()[self._flat(entries, part)]

    def _flat(self, entries: Sparse, part: slice) -> Int[np.ndarray, " entry"]:
        """Where the stored entries of a part are in its flat scores."""
        image, here = _stored(entries, part)
        return self.width * image + entries.indices[here]

    def mass(
        self, z: Scores, weights: Float32[np.ndarray, " row"], part: slice
    ) -> Float64[np.ndarray, " class"]:
        """The sum of each class over the rows, each with its weight."""
        return (weights @ z).astype(np.float64)

    def classes(
        self, columns: Int[np.ndarray, "row chosen"], part: slice
    ) -> Int[np.ndarray, "row chosen"]:
        """The classes of some columns: the columns themselves."""
        return columns

    def in_classes(self, stored: Sparse, part: slice) -> Sparse:
        """Entries (row, column) as entries (row, class)."""
        return stored


@dataclass(frozen=True)
class LikeliestClasses:
    """Some classes of each row, in increasing order."""

    chosen: Int[np.ndarray, "row column"]
    n_classes: int

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.chosen.shape[1])

    def table(self, of_classes: Rows, n_rows: int) -> Rows:
        """The classes as rows, to be gathered."""
        return of_classes

    def products(self, rows: Rows, table: Rows, part: slice) -> Scores:
        """Return x . t of the rows of a part and their own classes."""
        scores = np.empty((part.stop - part.start, self.width), np.float32)
        step = max(1, GATHERED // (self.width * table.shape[1]))
        for start in range(part.start, part.stop, step):
            here = slice(start, min(start + step, part.stop))
            found = table[self.chosen[here]] @ rows[here, :, np.newaxis]
            scores[here.start - part.start : here.stop - part.start] = found[:, :, 0]
        return scores

    def of(self, vector: Vector, part: slice) -> Scores:
        """The numbers of the classes of each row."""
        return vector[self.chosen[part]]

    def add(self, scores: Scores, entries: Sparse, values: np.ndarray, part: slice) -> Scores:
        """Add values at the stored entries that have a column to `scores`; return `scores`."""
        column, found = self._columns(entries, part)
        scores.ravel()[column[found]] += values[found]
        return scores

    def taken(self, scores: Scores, entries: Sparse, part: slice) -> Float32[np.ndarray, " entry"]:
        """The scores at the stored (row, class) entries of a part; 0 where there is no column."""
        column, found = self._columns(entries, part)
        return np.where(found, scores.ravel()[column], np.float32(0.0))

    def _columns(
        self, entries: Sparse, part: slice
    ) -> tuple[Int[np.ndarray, " entry"], Bool[np.ndarray, " entry"]]:
        """Where the stored entries of a part are in its flat scores, and which are there."""
        image, here = _stored(entries, part)
        own = self.chosen[part].astype(np.int64)
        own += self.n_classes * np.arange(len(own))[:, np.newaxis]
        wanted = image * self.n_classes + entries.indices[here]
        column = np.minimum(np.searchsorted(own.ravel(), wanted), own.size - 1)
        return column, own.ravel()[column] == wanted

    def mass(
        self, z: Scores, weights: Float32[np.ndarray, " row"], part: slice
    ) -> Float64[np.ndarray, " class"]:
        """The sum of each class over the rows, each with its weight."""
        weighed = z * weights[:, np.newaxis]
        return np.bincount(self.chosen[part].ravel(), weighed.ravel(), minlength=self.n_classes)

    def classes(
        self, columns: Int[np.ndarray, "row chosen"], part: slice
    ) -> Int[np.ndarray, "row chosen"]:
        """The classes of some columns of each row."""
        return np.take_along_axis(self.chosen[part], columns, 1)

    def in_classes(self, stored: Sparse, part: slice) -> Sparse:
        """Entries (row, column) as entries (row, class)."""
        image = np.repeat(np.arange(stored.shape[0]), np.diff(stored.indptr))
        classes = self.chosen[part][image, stored.indices]
        shape = (stored.shape[0], self.n_classes)
        return sp.csr_array((stored.data, classes, stored.indptr), shape=shape)


def likeliest_classes(images: Rows, texts: Rows, count: int) -> Int[np.ndarray, "row column"]:
    """The classes of the largest products of each image, in increasing order."""
    chosen = np.empty((len(images), count), np.int32)
    table = np.ascontiguousarray(texts.T)
    step = max(1, 4 * GATHERED // len(texts))
    for start in range(0, len(images), step):
        chosen[start : start + step] = largest(images[start : start + step] @ table, count)
    return chosen


def log_shares(
    scores: Scores, label: Int[np.ndarray, "row one"]
) -> tuple[Float32[np.ndarray, " row"], Float32[np.ndarray, " row"], Float32[np.ndarray, " row"]]:
    """The largest score of each row, and the logarithms of softmax of it and of one class."""
    first = scores.max(1)
    total = scores - first[:, np.newaxis]
    own = np.take_along_axis(total, label, 1)[:, 0]
    np.exp(total, out=total)
    largest_share = -np.log(total.sum(1))
    return first, largest_share, np.maximum(own, np.float32(-80.0)) + largest_share


def first_classes(scores: Scores, count: int) -> Int[np.ndarray, "row best"]:
    """The classes of the largest scores, largest first; the lower class first among equals."""
    if count >= scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")
    chosen = largest(scores, count)
    order = np.argsort(-np.take_along_axis(scores, chosen, 1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, 1)


def largest(scores: Scores, count: int) -> Int[np.ndarray, "row best"]:
    """The columns of the largest scores of each row, in increasing order; the lower of equals.

    Columns are dealt into groups. As many groups as are asked for have a maximum of at least the
    `count`th largest maximum: what is below it is not among the largest, and few others are left.
    """
    n_rows, width = scores.shape
    if not n_rows:
        return np.zeros((0, count), np.int32)
    size = max(1, width // (2 * count))
    groups = width // size
    maxima = scores[:, : groups * size].reshape(n_rows, size, groups).max(1)
    least = np.partition(maxima, groups - count, axis=1)[:, groups - count]
    entries = np.flatnonzero(scores >= least[:, np.newaxis])
    ends = np.searchsorted(entries, width * np.arange(n_rows + 1))
    counts = np.diff(ends)
    there = np.arange(counts.max()) < counts[:, np.newaxis]
    left = np.full(there.shape, -np.inf, np.float32)
    left[there] = scores.ravel()[entries]
    columns = np.zeros(there.shape, np.int32)
    columns[there] = entries % width
    last = left.shape[1] - count
    bound = np.partition(left, last, axis=1)[:, last, np.newaxis]
    above, equal = left > bound, left == bound
    room = count - np.count_nonzero(above, axis=1)
    chosen = above | (equal & (equal.cumsum(1) <= room[:, np.newaxis]))
    return columns[chosen].reshape(n_rows, count)
