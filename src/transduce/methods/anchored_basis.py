"""A batch of `Anchored` with fewer images than features, in a basis of its images, and back.

Text, counts and image evidence are the same in coordinates (`mixtures/basis.py`): text scores are
products of a centered image, which has coordinates, and a text, and one of the middle and the text.
So all steps work on the batch as on any other, with as many numbers a row as it has images.
"""

from dataclasses import replace

import numpy as np

from transduce.methods.anchored_passes import AnchoredBatch
from transduce.methods.anchored_rows import ArrayRows
from transduce.methods.anchored_steps import AnchoredState, Moments
from transduce.mixtures.basis import Basis


def in_basis(batch: AnchoredBatch) -> AnchoredBatch:
    """The batch in a basis of its compared rows, if these are fewer than their features.

    Its middle and neighbors are known.
    """
    n_queries, n_rows = batch.n_queries, batch.n_queries + len(batch.compared_shots)
    if n_rows >= len(batch.middle):
        return batch
    every = slice(0, n_queries)
    rows = np.concatenate([batch.compared(every), batch.compared_shots - batch.middle])
    basis = Basis.of(rows)
    coordinates = basis.coordinates(rows)
    compared, compared_shots = coordinates[:n_queries], coordinates[n_queries:]
    inside = replace(
        batch,
        rows=ArrayRows(compared),
        texts=basis.coordinates(batch.texts),
        compared_shots=compared_shots,
        middle=np.zeros(n_rows, np.float32),
        basis=basis,
        whole=batch,
    )
    if batch.rows.view(every) is None:
        return inside
    return replace(inside, rows=ArrayRows(batch.rows.images(every), compared), texts=batch.texts)


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
