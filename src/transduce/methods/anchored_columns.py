"""The classes that `Anchored` scores an image for: all of them, or of very many its likeliest.

With more than `MOST_DENSE` classes each image is scored for the `CANDIDATES` that the text finds
likeliest, once for all steps; all others have no share of it. docs/scaling.md says what that
changes.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Float64, Int

from transduce.mixtures.within import Sparse

MOST_DENSE = 4096  # classes; with more, every image has candidates
CANDIDATES = 64
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

    def products(self, rows: Rows, table: Rows, part: slice) -> Scores:
        """X . t of the rows of a part and the classes of their columns."""
        ...

    def of(self, vector: Vector, part: slice) -> Float32[np.ndarray, "..."]:
        """A number of each class, in the columns of the rows of a part."""
        ...

    def add(self, scores: Scores, places: Sparse, values: np.ndarray, part: slice) -> Scores:
        """Add values at stored (row, class) entries, in place."""
        ...

    def mass(self, z: Scores, part: slice) -> Float64[np.ndarray, " class"]:
        """The sum of each class."""
        ...

    def classes(
        self, columns: Int[np.ndarray, "row chosen"], part: slice
    ) -> Int[np.ndarray, "row chosen"]:
        """The classes of some columns of each row."""
        ...

    def in_classes(self, stored: Sparse, part: slice) -> Sparse:
        """Entries (row, column) as entries (row, class)."""
        ...


def _stored(places: Sparse, part: slice) -> tuple[Int[np.ndarray, " entry"], slice]:
    """The row within a part of each stored entry, and where the entries are."""
    here = slice(int(places.indptr[part.start]), int(places.indptr[part.stop]))
    counts = np.diff(places.indptr[part.start : part.stop + 1])
    return np.repeat(np.arange(len(counts)), counts), here


@dataclass(frozen=True)
class AllClasses:
    """A column for every class."""

    width: int

    def products(self, rows: Rows, table: Rows, part: slice) -> Scores:
        """X . t of the rows of a part and all classes."""
        return rows[part] @ table.T

    def of(self, vector: Vector, part: slice) -> Vector:
        """The numbers of the classes, the same for every row."""
        return vector

    def add(self, scores: Scores, places: Sparse, values: np.ndarray, part: slice) -> Scores:
        """Add values at stored (row, class) entries, in place."""
        image, here = _stored(places, part)
        if len(image):
            scores[image, places.indices[here]] += values[here]
        return scores

    def mass(self, z: Scores, part: slice) -> Float64[np.ndarray, " class"]:
        """The sum of each class."""
        return z.sum(0, dtype=np.float64)

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

    def products(self, rows: Rows, table: Rows, part: slice) -> Scores:
        """X . t of the rows of a part and their own classes."""
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

    def add(self, scores: Scores, places: Sparse, values: np.ndarray, part: slice) -> Scores:
        """Add values at stored (row, class) entries, in place; others are none of the columns."""
        image, here = _stored(places, part)
        if not len(image):
            return scores
        own = self.chosen[part].astype(np.int64)
        own += self.n_classes * np.arange(len(own))[:, np.newaxis]
        wanted = image * self.n_classes + places.indices[here]
        place = np.minimum(np.searchsorted(own.ravel(), wanted), own.size - 1)
        found = own.ravel()[place] == wanted
        scores.ravel()[place[found]] += values[here][found]
        return scores

    def mass(self, z: Scores, part: slice) -> Float64[np.ndarray, " class"]:
        """The sum of each class."""
        return np.bincount(self.chosen[part].ravel(), z.ravel(), minlength=self.n_classes)

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
        scores = images[start : start + step] @ table
        np.negative(scores, out=scores)
        best = np.argpartition(scores, count - 1, axis=1)[:, :count]
        chosen[start : start + step] = np.sort(best, axis=1)
    return chosen


def log_share(scores: Scores, label: Int[np.ndarray, "row one"]) -> Float32[np.ndarray, " row"]:
    """The logarithm of softmax(scores) of one class a row."""
    others = np.minimum(scores - np.take_along_axis(scores, label, 1), np.float32(80.0))
    return -np.log(np.exp(others).sum(1))


def first_classes(scores: Scores, count: int) -> Int[np.ndarray, "row best"]:
    """The classes of the largest scores, largest first; the lower class first among equals."""
    if count >= scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")
    chosen = np.sort(np.argpartition(-scores, count - 1, axis=1)[:, :count], axis=1)
    order = np.argsort(-np.take_along_axis(scores, chosen, 1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, 1)
