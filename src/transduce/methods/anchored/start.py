"""How a batch of `Anchored` begins: its middle, who is a neighbor of whom, and its basis.

What images are compared by is the same in coordinates of a basis of them (`mixtures/basis.py`),
with as many numbers an image as there are images; all steps work on such a batch as on any other.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from transduce.methods.anchored import passes
from transduce.methods.anchored.batch import (
    AnchoredBatch,
    ArrayRows,
    KnownRows,
    Rows,
    RowSource,
    unit_float32,
)
from transduce.methods.anchored.cells import batch_neighbors
from transduce.methods.anchored.columns import CANDIDATES, MOST_DENSE
from transduce.methods.anchored.past import Past
from transduce.methods.neighbors import both_ways
from transduce.mixtures.basis import Basis
from transduce.mixtures.within import row_squares
from transduce.simplex.passes import Passes

if TYPE_CHECKING:
    from transduce.methods.anchored.anchored import Anchored


def bare_batch(
    method: "Anchored",
    rows: RowSource,
    texts: Float[np.ndarray, "class feature"],
    shots: KnownRows | None,
) -> AnchoredBatch:
    """The batch before any pass over it: its middle is 0, and no neighbor votes."""
    unit = unit_float32(texts)
    shots = shots or KnownRows.none(unit.shape[1])
    compared_shots = shots.images if shots.view is None else shots.view
    width = rows.compared(np.arange(1)).shape[1]
    if not len(compared_shots):
        compared_shots = np.zeros((0, width), np.float32)
    return AnchoredBatch(
        rows=rows,
        texts=np.float32(method.text_scale) * unit,
        shots=shots.images,
        compared_shots=compared_shots,
        shot_labels=shots.labels,
        names=_centered_directions(unit) if method.names_foretell_means else None,
        middle=np.zeros(width, np.float32),
    )


def prepared(
    batch: AnchoredBatch, neighbors: int, run: Passes, past: Past | None = None
) -> AnchoredBatch:
    """The batch with its middle, the graph of neighbors, and of many classes the candidates."""
    total = np.zeros(len(batch.middle))
    for part in run(passes.row_sum, batch, None, batch.chunks()):
        total += part
    middle = (total / batch.n_queries).astype(np.float32)
    if past is not None:
        share = batch.n_queries / (batch.n_queries + past.count)
        middle = (share * middle + (1.0 - share) * past.middle).astype(np.float32)
    elif len(batch.shot_labels):
        middle = np.float32(0.5) * (middle + batch.compared_shots.mean(0))
    batch = replace(batch, middle=middle)
    if batch.n_classes > MOST_DENSE:
        count = min(CANDIDATES, batch.n_classes)
        parts = run(passes.likely_classes, batch, count, batch.chunks())
        batch = replace(batch, candidates=np.concatenate(list(parts)))
    found, recall = batch_neighbors(batch, neighbors, run)
    votes = both_ways(found, neighbors)[: batch.n_queries]
    return replace(batch, votes=votes, neighbor_recall=recall)


def in_basis(batch: AnchoredBatch) -> AnchoredBatch:
    """The batch in a basis of its compared rows, if these are fewer than their features.

    Its middle and neighbors are known. What the text says of so few images is worked out once.
    """
    n_queries, n_rows = batch.n_queries, batch.n_queries + len(batch.compared_shots)
    if n_rows >= len(batch.middle):
        return batch
    every = slice(0, n_queries)
    images = batch.rows.images(every)
    rows = np.concatenate([batch.compared(every), batch.compared_shots - batch.middle])
    basis = Basis.of(rows)
    coordinates = basis.coordinates(rows)
    return replace(
        batch,
        rows=ArrayRows(images, coordinates[:n_queries]),
        compared_shots=coordinates[n_queries:],
        middle=np.zeros(n_rows, np.float32),
        text_scores=images @ batch.texts.T if batch.candidates is None else None,
        basis=basis,
        whole=batch,
    )


def _centered_directions(texts: Rows) -> Rows:
    """Directions of the class embeddings from their middle."""
    centered = texts - texts.mean(0)
    centered /= np.sqrt(row_squares(centered))[:, np.newaxis] + np.float32(1e-12)
    return centered
