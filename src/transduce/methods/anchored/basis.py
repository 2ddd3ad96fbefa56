"""A batch of `Anchored` with fewer images than features, in a basis of its images, and back.

What images are compared by is the same in coordinates (`mixtures/basis.py`), with as many numbers
an image as there are images; and what the text says of them is worked out once, since so few
scores can be kept. All steps work on such a batch as on any other.
"""

from dataclasses import replace

import numpy as np

from transduce.methods.anchored.passes import AnchoredBatch
from transduce.methods.anchored.rows import ArrayRows
from transduce.methods.anchored.steps import AnchoredState, Moments
from transduce.mixtures.basis import Basis


def in_basis(batch: AnchoredBatch) -> AnchoredBatch:
    """The batch in a basis of its compared rows, if these are fewer than their features.

    Its middle and neighbors are known.
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


def in_features(state: AnchoredState) -> AnchoredState:
    """A state of a batch in a basis as one in features: what is to be remembered of it."""
    batch, basis, sums = state.batch.in_features, state.batch.basis, state.assignments.sums
    if basis is None:
        return state
    assert sums is not None
    assert state.classes is not None
    assert state.scaling is not None
    assert state.scaling.root is not None
    scaling = basis.in_features(state.scaling)
    rows = basis.rows(state.classes.sums @ state.scaling.root.T).astype(np.float32)
    products = basis.directions.T @ (state.moments.products @ basis.directions)
    return replace(
        state,
        batch=batch,
        moments=Moments.with_shots(batch, products),
        assignments=replace(state.assignments, sums=basis.rows(sums)),
        scaling=scaling,
        classes=replace(state.classes, sums=scaling.applied(rows)),
    )
