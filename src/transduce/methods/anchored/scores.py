"""The scores of a chunk of `Anchored` under a step.

A score is an affine function of the image but where the image is left out of its own classes: the
few stored entries of z. So the scores of a step are one matrix product with a table of the
classes, corrected at these entries.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Int

from transduce.methods.anchored.batch import AnchoredBatch, Rows
from transduce.methods.anchored.columns import Scores
from transduce.methods.anchored.entries import StoredRows
from transduce.methods.anchored.named import LabelSums
from transduce.mixtures.collapsed import CollapsedGaussians
from transduce.mixtures.presence import PresencePrior
from transduce.mixtures.within import (
    BLOCK_ENTRIES,
    Sparse,
    crowded,
    entry_products,
    transformed,
)
from transduce.simplex.threads import over_slices

Result = TypeVar("Result")


@dataclass(frozen=True)
class ImageEvidence:
    """The classes as Gaussians, and how rows are taken to the space they live in."""

    classes: CollapsedGaussians
    transform: Float32[np.ndarray, "feature feature"]  # y = transform (x - middle)
    folded: bool  # the transform is in the table of the classes, rather than applied to the rows
    table: Rows  # what rows are multiplied with for y . S_k
    lengths: Float32[np.ndarray, " query"]  # |y|^2

    def placed(self, rows: Rows) -> Rows:
        """The rows to be multiplied with the table."""
        return rows if self.folded else transformed(rows, self.transform)


@dataclass(frozen=True)
class StepTables:
    """What a step knows of the classes, shared with all chunks."""

    prior: PresencePrior | None = None
    z: StoredRows | None = None  # of the queries, from the step before
    evidence: ImageEvidence | None = None
    image_weight: float = 0.0
    vote_weight: float = 0.0  # with the weight of the prior in it
    with_sums: bool = False


class ChunkScores:
    """The scores of a chunk under a step, block by block."""

    def __init__(
        self, batch: AnchoredBatch, step: StepTables, chunk: slice, *, apart: bool = False
    ) -> None:
        view, images = batch.rows.view(chunk), batch.rows.images(chunk)
        self.compared = (images if view is None else view) - batch.middle
        self._size, self.columns = len(images), batch.columns(chunk)
        self._text_scores = None if batch.text_scores is None else batch.text_scores[chunk]
        # Without a view, text and looks are compared with the same rows: one table for both.
        self._images = self.compared if view is None else images
        self._middle = batch.middle if view is None else None
        self._texts = self.columns.table(batch.texts, self._size)
        self._text_offset = np.zeros(batch.n_classes, np.float32)
        if view is None:
            self._text_offset = batch.middle @ batch.texts.T
        self._counts = np.zeros(batch.n_classes, np.float32)
        self._left_out = np.zeros(0, np.float32)
        if step.z is None or step.prior is None:
            none = (
                np.zeros(0, np.float32),
                np.zeros(0, np.int32),
                np.zeros(self._size + 1, np.int32),
            )
            self._z: Sparse = sp.csr_array(none, shape=(self._size, 0))
        else:
            self._z = step.z.of(chunk)
            self._counts = step.prior.without_leaving_out()
            self._left_out = step.prior.left_out(self._z.indices, self._z.data)
        self._voted: Sparse | None = None
        self._evidence, self._one_table = step.evidence, False
        if step.evidence is not None:
            self._one_table = step.evidence.folded and view is None and not apart
            self._one_table &= not crowded(self._z.nnz, self._z.shape)
            self._prepare_evidence(batch, step.evidence, step.image_weight, chunk)
            if step.vote_weight != 0.0 and step.z is not None and batch.votes is not None:
                self._voted = step.z.weighed(batch.votes[chunk], batch.known)
                self._weighted_votes = np.float32(step.vote_weight) * self._voted.data

    def _prepare_evidence(
        self, batch: AnchoredBatch, evidence: ImageEvidence, weight: float, chunk: slice
    ) -> None:
        self._lengths = evidence.lengths[chunk]
        table, self._placed = evidence.table, evidence.placed(self.compared)
        slope, per_length, constant = evidence.classes.affine()
        self._factor = np.float32(weight)
        self._slope, self._per_length = self._factor * slope, self._factor * per_length
        self._image_offset = self._factor * constant
        if self._one_table:
            dots = entry_products(self._placed, table, self._z)
            self._left_out += self._image_left_out(dots, slice(0, self._size))
            table = self._slope[:, np.newaxis] * table
            table += batch.texts
            self._image_offset += self._text_offset
        self._image_table = self.columns.table(table, self._size)

    def _image_left_out(
        self, dots: Float32[np.ndarray, " entry"], rows: slice
    ) -> Float32[np.ndarray, " entry"]:
        """How the image evidence of the entries of some rows changes as these are left out."""
        assert self._evidence is not None
        here = slice(int(self._z.indptr[rows.start]), int(self._z.indptr[rows.stop]))
        counts = np.diff(self._z.indptr[rows.start : rows.stop + 1])
        lengths = np.repeat(self._lengths[rows], counts)
        classes, share = self._z.indices[here], self._z.data[here]
        return self._factor * self._evidence.classes.left_out(classes, share, dots, lengths)

    def over_blocks(self, work: Callable[[slice], Result]) -> list[Result]:
        """`work` on blocks of the chunk that stay in the cache; the results in order."""
        step = max(1, BLOCK_ENTRIES // self.columns.width)
        starts = range(0, self._size, step)
        return over_slices(work, [slice(a, min(a + step, self._size)) for a in starts])

    def joint(self, rows: slice) -> Scores:
        """The sum of the scores of text, counts, images and votes."""
        columns = self.columns
        if self._evidence is None:
            scores, left_out = self._text(rows), self._here(self._left_out, self._z, rows)
        elif self._one_table:
            scores = columns.products(self._placed, self._image_table, rows)
            scores += columns.of(self._image_offset, rows)
            scores += self._lengths[rows, np.newaxis] * columns.of(self._per_length, rows)
            left_out = self._here(self._left_out, self._z, rows)
        else:
            scores, left_out = self._image(rows)
            scores += self._text(rows)
            left_out += self._here(self._left_out, self._z, rows)
        scores += columns.of(self._counts, rows)
        return self.with_votes(columns.add(scores, self._z, left_out, rows), rows)

    def parts(self, rows: slice) -> tuple[Scores, Scores, Scores]:
        """The scores of text, of counts, and of images with their weight; made with `apart`."""
        columns, text = self.columns, self._text(rows)
        counts = np.zeros_like(text)
        counts += columns.of(self._counts, rows)
        columns.add(counts, self._z, self._here(self._left_out, self._z, rows), rows)
        image, left_out = self._image(rows)
        return text, counts, columns.add(image, self._z, left_out, rows)

    def _text(self, rows: slice) -> Scores:
        if self._text_scores is not None:
            return self._text_scores[rows].copy()
        scores = self.columns.products(self._images, self._texts, rows)
        scores += self.columns.of(self._text_offset, rows)
        return scores

    def _image(self, rows: slice) -> tuple[Scores, Float32[np.ndarray, " entry"]]:
        """The scores of images, and how those of stored entries change as these are left out."""
        columns = self.columns
        image = columns.products(self._placed, self._image_table, rows)
        left_out = self._image_left_out(columns.taken(image, self._z, rows), rows)
        image *= columns.of(self._slope, rows)
        image += columns.of(self._image_offset, rows)
        image += self._lengths[rows, np.newaxis] * columns.of(self._per_length, rows)
        return image, left_out

    def with_votes(self, scores: Scores, rows: slice) -> Scores:
        """Add the neighbors' votes to `scores`; return `scores`."""
        if self._voted is None:
            return scores
        votes = self._here(self._weighted_votes, self._voted, rows)
        return self.columns.add(scores, self._voted, votes, rows)

    @staticmethod
    def _here(
        values: Float32[np.ndarray, " entry"], entries: Sparse, rows: slice
    ) -> Float32[np.ndarray, " some"]:
        """The values of the stored entries of some rows."""
        return values[int(entries.indptr[rows.start]) : int(entries.indptr[rows.stop])]

    def label_sums(self, labels: Int[np.ndarray, " row"]) -> LabelSums:
        """The sums of the images of each label, as the names see them."""
        found = LabelSums.of(labels, self._images)
        return found if self._middle is None else found.moved(self._middle)

    def largest(self) -> Int[np.ndarray, " row"]:
        """The class of the largest entry of z of each row, from the step before."""
        z = self._z
        image = np.repeat(np.arange(self._size), np.diff(z.indptr))
        order = np.lexsort((-z.indices, z.data, image))  # the last of each image is its largest
        return z.indices[order[z.indptr[1:] - 1]]
