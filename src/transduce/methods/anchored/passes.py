"""The passes of `Anchored` over the images: what is done to one chunk of them, as pure functions.

Each takes the batch, what the step shares with every chunk, and a chunk; it returns arrays of the
chunk and sums, which the caller adds up in the order of the chunks. So a chunk may be worked on by
a thread, by another machine, or twice, and the answer is the same to the bit.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float32, Float64, Int

from transduce.methods.anchored.batch import AnchoredBatch, Rows
from transduce.methods.anchored.columns import Scores, largest, likeliest_classes
from transduce.methods.anchored.entries import Entries, StoredRows
from transduce.methods.anchored.scores import ChunkScores, StepTables
from transduce.mixtures.within import (
    Sparse,
    class_sums,
    entry_products,
    row_squares,
    transformed,
    variance_terms,
)

NEGLIGIBLE = 1e-5  # of an image; smaller shares of it are counted, but not stored
MOST_STORED = 64  # entries of an image; the largest
LARGER_SHARES = (1e-4, 1e-3, 1 / MOST_STORED)  # the last has fewer entries in any row
BEST = 20  # classes of an image that get a probability

PerClass = Float64[np.ndarray, " class"]


@dataclass(frozen=True)
class ChunkAssignments:
    """Assignments z of a chunk, and what is summed over them before small ones are dropped."""

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
    """Return z = softmax(scores) of a chunk."""
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
    z = stored[0] if len(stored) == 1 else sp.csr_array(sp.vstack(stored, format="csr"))
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
        full = _full(kept)
        if not len(full):
            break
        least[full] = np.float32(share) / parts[full]
        if 2 * len(full) > len(z):
            kept = z > least[:, np.newaxis]
        else:
            kept[full] = z[full] > least[full, np.newaxis]
    full = _full(kept)
    if len(full) == len(z):
        entries = (largest(z, MOST_STORED) + width * full[:, np.newaxis]).ravel()
    else:
        if len(full):
            chosen = largest(z[full], MOST_STORED) + width * full[:, np.newaxis]
            kept[full] = False
            kept.ravel()[chosen] = True
        entries = np.flatnonzero(kept)  # of the flat array: much sooner than rows and columns
    ends = np.searchsorted(entries, width * np.arange(len(z) + 1)).astype(np.int32)
    shares = z.ravel()[entries] * np.repeat(parts, np.diff(ends))
    return sp.csr_array((shares, (entries % width).astype(np.int32), ends), shape=z.shape)


def _full(kept: Bool[np.ndarray, "row class"]) -> Int[np.ndarray, " full"]:
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
