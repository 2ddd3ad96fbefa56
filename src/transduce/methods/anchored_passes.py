"""The passes of `Anchored` over the images: what is done to one chunk of them, as pure functions.

Each takes the batch, what the step shares with every chunk, and a chunk; it returns arrays of the
chunk and sums, which the caller adds up in the order of the chunks. So a chunk may be worked on by
a thread, by another machine, or twice, and the answer is the same to the bit.

A score is an affine function of the image but where the image is left out of its own classes: the
few stored entries of z. So the scores of a step are one matrix product with a table of the
classes, corrected at these entries.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float32, Float64, Int

from transduce.methods.anchored_columns import (
    AllClasses,
    Columns,
    LikeliestClasses,
    largest,
    likeliest_classes,
)
from transduce.methods.anchored_entries import Entries, StoredRows
from transduce.methods.anchored_rows import Rows, RowSource
from transduce.mixtures.basis import Basis
from transduce.mixtures.collapsed import CollapsedGaussians
from transduce.mixtures.presence import PresencePrior
from transduce.mixtures.within import (
    BLOCK_ENTRIES,
    Sparse,
    class_sums,
    entry_products,
    row_squares,
    transformed,
    variance_terms,
)
from transduce.simplex.passes import chunks_of
from transduce.simplex.threads import over_slices

NEGLIGIBLE = 1e-5  # of an image; smaller shares of it are counted, but not stored
MOST_STORED = 64  # entries of an image; the largest
LARGER_SHARES = (1e-4, 1e-3, 1 / MOST_STORED)  # the last has fewer entries in any row
BEST = 20  # classes of an image that get a probability

Result = TypeVar("Result")
Scores = Float32[np.ndarray, "row class"]
PerClass = Float64[np.ndarray, " class"]


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
    basis: Basis | None = None  # of few images; rows and tables are in its coordinates then
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

    def text_offset(self) -> Float32[np.ndarray, " class"]:
        """What text scores lack if they are made of compared rows, which lack their middle."""
        whole = self.in_features
        return whole.middle @ whole.texts.T

    def chunks(self) -> list[slice]:
        """The chunks of the queries."""
        return chunks_of(self.n_queries)

    def known(self) -> Sparse:
        """Assignments (shot, class) of the shots, one-hot."""
        places = np.arange(len(self.shot_labels)), self.shot_labels
        ones = np.ones(len(self.shot_labels), np.float32)
        return sp.csr_array((ones, places), shape=(len(ones), self.n_classes))

    def columns(self, chunk: slice) -> Columns:
        """The classes that the images of a chunk are scored for."""
        if self.candidates is None:
            return AllClasses(self.n_classes)
        return LikeliestClasses(self.candidates[chunk], self.n_classes)

    def compared(self, chunk: slice) -> Rows:
        """What images are compared by, minus its middle."""
        seen = self.rows.view(chunk)
        return (self.rows.images(chunk) if seen is None else seen) - self.middle


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


@dataclass(frozen=True)
class ChunkAssignments:
    """Z of a chunk, and what is summed over all its entries before small ones are dropped."""

    z: Entries
    mass: PerClass
    absence: PerClass  # sum of log(1 - z)
    sums: Rows | None  # S of the compared rows, of what is stored


@dataclass(frozen=True)
class Spread:
    """What the variance within classes is measured with."""

    z: StoredRows
    mass: PerClass
    squares: PerClass  # |S_k|^2
    table: Rows
    transform: Float32[np.ndarray, "feature feature"]
    folded: bool
    lengths: Float32[np.ndarray, " query"] | None  # None: to be measured


def row_sum(batch: AnchoredBatch, shared: None, chunk: slice) -> Float64[np.ndarray, " feature"]:
    """The sum of the compared rows, the middle of the batch being 0."""
    return batch.compared(chunk).sum(0, dtype=np.float64)


def row_products(
    batch: AnchoredBatch, shared: None, chunk: slice
) -> Float64[np.ndarray, "feature feature"]:
    """Sum x x' over the compared rows x."""
    rows = batch.compared(chunk)
    return (rows.T @ rows).astype(np.float64)


def likely_classes(batch: AnchoredBatch, count: int, chunk: slice) -> Int[np.ndarray, "row column"]:
    """The likeliest classes of each image by the text."""
    return likeliest_classes(batch.rows.images(chunk), batch.texts, count)


def spread(
    batch: AnchoredBatch, shared: Spread, chunk: slice
) -> tuple[Float32[np.ndarray, " query"], float, float]:
    """|y|^2 of each image, and the terms of the variance within classes."""
    rows = batch.compared(chunk)
    placed = rows
    if not shared.folded or shared.lengths is None:
        placed = transformed(rows, shared.transform)
    lengths = row_squares(placed) if shared.lengths is None else shared.lengths[chunk]
    z = shared.z.of(chunk)
    dots = entry_products(rows if shared.folded else placed, shared.table, z)
    return lengths, *variance_terms(z, dots, lengths, shared.mass, shared.squares)


def assign_chunk(batch: AnchoredBatch, step: StepTables, chunk: slice) -> ChunkAssignments:
    """Z = softmax(scores) of a chunk."""
    scores = ChunkScores(batch, step, chunk)
    n_classes = batch.n_classes

    def work(rows: slice) -> tuple[Sparse, PerClass]:
        z = scores.joint(rows)
        z -= z.max(1, keepdims=True)
        np.exp(z, out=z)
        parts = np.float32(1.0) / z.sum(1)  # of 1: what z is to be multiplied with
        stored = _stored(z, parts, exactly=step.with_sums)
        return scores.columns.in_classes(stored, rows), scores.columns.mass(z, parts, rows)

    stored, masses = zip(*scores.over_blocks(work), strict=True)
    z = sp.csr_array(sp.vstack(stored, format="csr"))
    mass = np.sum(masses, axis=0)
    # log(1 - z) of those stored; -z stands for it in the others.
    share = np.minimum(z.data, 0.9999).astype(np.float64)
    exact = np.bincount(z.indices, np.log1p(-share) + share, minlength=n_classes)
    sums = class_sums(z, scores.compared) if step.with_sums else None
    return ChunkAssignments(Entries.of(z), mass, exact - mass, sums)


def _stored(z: Scores, parts: Float32[np.ndarray, " row"], *, exactly: bool) -> Sparse:
    """The entries of z, times the `parts` of its rows, that are worth storing.

    They are at most `MOST_STORED` of a row: of rows with more, the largest are found `exactly`, or
    else all above a larger share.
    """
    width = z.shape[1]
    least = np.float32(NEGLIGIBLE) / parts
    kept = z > least[:, np.newaxis]
    for share in () if exactly else LARGER_SHARES:
        crowded = _crowded(kept)
        if not len(crowded):
            break
        least[crowded] = np.float32(share) / parts[crowded]
        if 2 * len(crowded) > len(z):
            kept = z > least[:, np.newaxis]
        else:
            kept[crowded] = z[crowded] > least[crowded, np.newaxis]
    crowded = _crowded(kept)
    if len(crowded):
        chosen = largest(z[crowded] if len(crowded) < len(z) else z, MOST_STORED)
        kept[crowded] = False
        kept.ravel()[chosen + width * crowded[:, np.newaxis]] = True
    places = np.flatnonzero(kept)  # of the flat array: much sooner than rows and columns
    ends = np.searchsorted(places, width * np.arange(len(z) + 1)).astype(np.int32)
    shares = z.ravel()[places] * np.repeat(parts, np.diff(ends))
    return sp.csr_array((shares, (places % width).astype(np.int32), ends), shape=z.shape)


def _crowded(kept: Bool[np.ndarray, "row class"]) -> Int[np.ndarray, " crowded"]:
    """The rows with more than `MOST_STORED` entries."""
    counts = np.bitwise_count(np.packbits(kept, axis=1)).sum(1, dtype=np.int32)
    return np.flatnonzero(counts > MOST_STORED)


def agreeing(batch: AnchoredBatch, step: StepTables, chunk: slice) -> tuple[int, float]:
    """How many images have the same answer by images and counts as by text and counts.

    And how many answers by text and counts are right by their own probabilities.
    """
    scores = ChunkScores(batch, replace(step, vote_weight=0.0), chunk, apart=True)

    def same(rows: slice) -> tuple[int, float]:
        text, counts, image = scores.parts(rows)
        image += counts
        text += counts
        agree = int((image.argmax(1) == text.argmax(1)).sum())
        text -= text.max(1, keepdims=True)
        np.exp(text, out=text)
        return agree, float((1.0 / text.sum(1)).sum(dtype=np.float64))

    agree, sure = zip(*scores.over_blocks(same), strict=True)
    return sum(agree), sum(sure)


class ChunkScores:
    """The scores of a chunk under a step, block by block."""

    def __init__(
        self, batch: AnchoredBatch, step: StepTables, chunk: slice, *, apart: bool = False
    ) -> None:
        view = batch.rows.view(chunk)
        images = batch.rows.images(chunk)
        self.compared = (images if view is None else view) - batch.middle
        self._size, self.columns = len(images), batch.columns(chunk)
        # Without a view, text and looks are compared with the same rows: one table for both.
        self._images = self.compared if view is None else images
        offset = np.zeros(batch.n_classes, np.float32)
        if view is None:
            offset = batch.text_offset()
        self._texts = self.columns.table(batch.texts, self._size)
        self._text_offset = offset
        self._counts = np.zeros(batch.n_classes, np.float32)
        self._left_out = np.zeros(0, np.float32)
        nothing = np.zeros((self._size, 0), np.float32)
        self._z: Sparse = sp.csr_array(nothing)
        self._voted: Sparse = sp.csr_array(nothing)
        self._evidence = step.evidence
        self._one_table = step.evidence is not None and step.evidence.folded and view is None
        if step.z is not None and step.prior is not None:
            self._z = step.z.of(chunk)
            self._counts = step.prior.without_leaving_out()
            self._left_out = step.prior.left_out(self._z.indices, self._z.data)
        self._offset = self._text_offset + self._counts
        if step.evidence is not None:
            self._prepare_evidence(batch, step.evidence, step.image_weight, chunk, apart=apart)
        voting = step.evidence is not None and step.vote_weight != 0.0
        if voting and step.z is not None and batch.votes is not None:
            self._voted = step.z.weighed(batch.votes[chunk], batch.known())
        self._weighted_votes = np.float32(step.vote_weight) * self._voted.data

    def _prepare_evidence(
        self,
        batch: AnchoredBatch,
        evidence: ImageEvidence,
        weight: float,
        chunk: slice,
        *,
        apart: bool,
    ) -> None:
        self._lengths = evidence.lengths[chunk]
        table, self._placed = evidence.table, evidence.placed(self.compared)
        slope, self._per_length, constant = evidence.classes.affine()
        self._factor = np.float32(weight)
        self._slope = self._factor * slope
        self._per_length = self._factor * self._per_length
        self._image_offset = self._factor * constant
        self._offset = self._offset + self._image_offset
        if apart:  # the table as it is, from which each block has its dots
            self._image_table = self.columns.table(table, self._size)
            return
        dots = entry_products(self._placed, table, self._z)
        self._all_left_out = self._left_out + self._image_left_out(dots, slice(0, self._size))
        table = self._slope[:, np.newaxis] * table
        if self._one_table:
            table += batch.texts
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
        """All parts together."""
        columns = self.columns
        if self._evidence is None:
            scores = columns.products(self._images, self._texts, rows)
            scores += columns.of(self._offset, rows)
            return self._added(scores, self._z, self._left_out, rows)
        scores = columns.products(self._placed, self._image_table, rows)
        if not self._one_table:
            scores += columns.products(self._images, self._texts, rows)
        scores += columns.of(self._offset, rows)
        scores += self._lengths[rows, np.newaxis] * columns.of(self._per_length, rows)
        scores = self._added(scores, self._z, self._all_left_out, rows)
        return self.with_votes(scores, rows)

    def parts(self, rows: slice) -> tuple[Scores, Scores, Scores]:
        """The scores of text, of counts, and of images with their weight; made with `apart`."""
        columns = self.columns
        text = columns.products(self._images, self._texts, rows)
        text += columns.of(self._text_offset, rows)
        counts = np.zeros_like(text)
        counts += columns.of(self._counts, rows)
        self._added(counts, self._z, self._left_out, rows)
        image = columns.products(self._placed, self._image_table, rows)
        left_out = self._image_left_out(columns.taken(image, self._z, rows), rows)
        image *= columns.of(self._slope, rows)
        image += columns.of(self._image_offset, rows)
        image += self._lengths[rows, np.newaxis] * columns.of(self._per_length, rows)
        return text, counts, columns.add(image, self._z, left_out, rows)

    def with_votes(self, scores: Scores, rows: slice) -> Scores:
        """The scores with the neighbors' votes added, in place."""
        return self._added(scores, self._voted, self._weighted_votes, rows)

    def _added(
        self, scores: Scores, places: Sparse, values: Float32[np.ndarray, " entry"], rows: slice
    ) -> Scores:
        here = slice(int(places.indptr[rows.start]), int(places.indptr[rows.stop]))
        return self.columns.add(scores, places, values[here], rows)

    def largest(self) -> Int[np.ndarray, " row"]:
        """The class of the largest entry of z of each row, from the step before."""
        z = self._z
        image = np.repeat(np.arange(self._size), np.diff(z.indptr))
        order = np.lexsort((-z.indices, z.data, image))  # the last of each image is its largest
        return z.indices[order[z.indptr[1:] - 1]]
