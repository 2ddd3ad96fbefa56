"""A batch of `Anchored`: images, read some at a time wherever they are kept, and shots.

What is known of the images before any step: class names, shots, and who votes for whom.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Float32, Int

from transduce.methods.anchored.columns import AllClasses, Columns, LikeliestClasses, Scores
from transduce.mixtures.basis import Basis
from transduce.mixtures.within import Sparse
from transduce.simplex.passes import chunks_of

Rows = Float32[np.ndarray, "row feature"]

ROWS_AT_ONCE = 1 << 10  # that are made unit vectors


class RowSource(Protocol):
    """Unit vectors (float32) of the images to label, in memory or in files.

    The same rows must be the same bits whenever they are asked for, and in whatever company.
    """

    def __len__(self) -> int:
        """Number of images."""
        ...

    def images(self, rows: slice) -> Rows:
        """Embeddings by the encoder of the names."""
        ...

    def view(self, rows: slice) -> Rows | None:
        """Embeddings by the encoder that images are compared by; None if it is the same."""
        ...

    def compared(self, rows: Int[np.ndarray, " chosen"]) -> Rows:
        """The view, or without one the embeddings, of any rows in the order given."""
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows in memory; made by `of`."""

    unit: Rows
    unit_view: Rows | None = None

    @classmethod
    def of(
        cls,
        rows: Float[np.ndarray, "row feature"],
        view: Float[np.ndarray, "row view"] | None = None,
    ) -> "ArrayRows":
        """Rows of any length and precision, as unit vectors."""
        return cls(unit_float32(rows), None if view is None else unit_float32(view))

    def __len__(self) -> int:
        return len(self.unit)

    def images(self, rows: slice) -> Rows:
        """Embeddings by the encoder of the names."""
        return self.unit[rows]

    def view(self, rows: slice) -> Rows | None:
        """Embeddings by the encoder that images are compared by; None if it is the same."""
        return None if self.unit_view is None else self.unit_view[rows]

    def compared(self, rows: Int[np.ndarray, " chosen"]) -> Rows:
        """The view, or without one the embeddings, of any rows in the order given."""
        return (self.unit if self.unit_view is None else self.unit_view)[rows]


@dataclass(frozen=True)
class KnownRows:
    """Labeled images: unit vectors, by both encoders if there is a view."""

    images: Rows
    labels: Int[np.ndarray, " shot"]
    view: Rows | None = None

    @classmethod
    def of(
        cls,
        rows: Float[np.ndarray, "shot feature"],
        labels: Int[np.ndarray, " shot"],
        view: Float[np.ndarray, "shot view"] | None = None,
    ) -> "KnownRows":
        """Shots of any length and precision."""
        return cls(unit_float32(rows), labels, None if view is None else unit_float32(view))

    @classmethod
    def none(cls, width: int) -> "KnownRows":
        """No shots."""
        return cls(np.zeros((0, width), np.float32), np.zeros(0, np.int64))


@dataclass(frozen=True)
class AnchoredBatch:
    """What stays the same from step to step, and is shared with whoever works on chunks."""

    rows: RowSource
    texts: Rows  # (class, feature), times the text's scale
    shots: Rows
    compared_shots: Rows  # by the view, if there is one
    shot_labels: Int[np.ndarray, " shot"]
    names: Rows | None
    middle: Float32[np.ndarray, " feature"]
    votes: Sparse | None = None  # (query, query or shot), what each one's vote weighs
    neighbor_recall: float = 1.0  # the share of true neighbors in it
    candidates: Int[np.ndarray, "query column"] | None = None  # the classes each is scored for
    text_scores: Scores | None = None  # of few images: once for all steps
    basis: Basis | None = None  # of few images; what they are compared by is in coordinates then
    whole: "AnchoredBatch | None" = None  # the same in features, if it is in a basis

    @property
    def n_queries(self) -> int:
        """Number of images to label."""
        return len(self.rows)

    @property
    def n_classes(self) -> int:
        """Number of classes, present or not."""
        return len(self.texts)

    @property
    def in_features(self) -> "AnchoredBatch":
        """The batch in the features of its encoders."""
        return self.whole or self

    def chunks(self) -> list[slice]:
        """The chunks of the queries."""
        return chunks_of(self.n_queries)

    @cached_property
    def known(self) -> Sparse:
        """Assignments (shot, class) of the shots, one-hot."""
        entries = np.arange(len(self.shot_labels)), self.shot_labels
        ones = np.ones(len(self.shot_labels), np.float32)
        return sp.csr_array((ones, entries), shape=(len(ones), self.n_classes))

    def columns(self, chunk: slice) -> Columns:
        """The classes that the images of a chunk are scored for."""
        if self.candidates is None:
            return AllClasses(self.n_classes)
        return LikeliestClasses(self.candidates[chunk], self.n_classes)

    def compared(self, chunk: slice) -> Rows:
        """What images are compared by, minus its middle."""
        seen = self.rows.view(chunk)
        return (self.rows.images(chunk) if seen is None else seen) - self.middle


def unit_float32(rows: Float[np.ndarray, "row feature"]) -> Rows:
    """Unit vectors in float32."""
    unit = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):  # what is needed meanwhile stays small
        part = unit[start : start + ROWS_AT_ONCE]
        part[:] = rows[start : start + ROWS_AT_ONCE]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return unit
