"""What is kept of a batch of `Anchored` for images that come later: a memory, and sums."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, UInt64

from transduce.methods.anchored.batch import AnchoredBatch
from transduce.methods.anchored.drift import Drift
from transduce.methods.anchored.entries import StoredRows
from transduce.methods.anchored.memory import Memory, first_by_priority, priorities
from transduce.methods.anchored.past import Past, PerClass
from transduce.methods.anchored.steps import AnchoredState
from transduce.mixtures.within import class_sums

Labels = Int[np.ndarray, " image"]
Chosen = Int[np.ndarray, " chosen"]


@dataclass(frozen=True)
class Sums:
    """What the images of a chunk that are not remembered add up to."""

    mass: PerClass
    absence: PerClass  # sum of log(1 - z)
    sums: Float64[np.ndarray, "class feature"]


@dataclass(frozen=True)
class Forgotten:
    """Which images are not remembered, and their assignments."""

    z: StoredRows
    rows: Bool[np.ndarray, " query"]


def past_of(
    state: AnchoredState,
    labels: Labels,
    looks: Float32[np.ndarray, "image look"],
    drift: Drift | None,
    *,
    confidence: float,
    power: float,
) -> Past:
    """The images of a batch, with those of the past before it.

    `labels` are of the new images and then of the remembered ones, `looks` of the new ones.
    """
    batch, before, wide = state.batch, state.before, looks.astype(np.float64)
    far = 0.0
    look_sums, look_products = wide.sum(0), wide.T @ wide
    written = labels[: len(looks)]
    if before is not None:
        written = np.concatenate([written, before.memory.written])
        look_sums, look_products = (
            look_sums + before.look_sums,
            look_products + before.look_products,
        )
        assert drift is not None
        n_images = len(looks) + before.images
        far = (float(drift.far.sum()) + before.far * before.images) / n_images
    kept = np.arange(batch.n_queries)
    if len(kept) > state.method.remembered:
        hashes = state.run(row_priorities, batch, None, batch.chunks())
        kept = first_by_priority(np.concatenate(list(hashes)), state.method.remembered)
    sums = _sums(state, kept)
    mass, present, every_sums = sums.mass, -np.expm1(np.minimum(sums.absence, 0.0)), sums.sums
    count, rest = float(batch.n_queries - len(kept)), state.past
    every_mass, every_sums = mass + state.moments.shot_mass, every_sums + state.moments.shot_sums
    if rest is not None:
        present = 1.0 - (1.0 - present) * (1.0 - rest.present)
        mass, count = mass + rest.mass, count + rest.count
        every_mass, every_sums = every_mass + rest.every_mass, every_sums + rest.every_sums
    return Past(
        memory=_memory(batch, kept, labels, written),
        count=count,
        mass=mass,
        present=present,
        rows=float(state.n_rows() - len(kept)),
        every_mass=every_mass,
        every_sums=every_sums,
        products=_products(state, kept),
        middle=batch.middle.astype(np.float64),
        shot_mass=state.every_shot_mass(),
        agreement=state.agreement,
        text_confidence=state.text_confidence,
        within_share=state.within_share,
        confidence=confidence,
        log_power=float(np.log(power)),
        shot_weight=np.nan if state.shot_weight is None else state.shot_weight,
        look_sums=look_sums,
        look_products=look_products,
        far=far,
    )


def _memory(batch: AnchoredBatch, kept: Chosen, labels: Labels, written: Labels) -> Memory:
    """Some images of a batch, wherever it reads them."""
    if not len(kept):
        return Memory.none(batch.rows.images(slice(0, 1)).shape[1])
    chosen = [slice(int(row), int(row) + 1) for row in kept]
    view = [seen for seen in map(batch.rows.view, chosen) if seen is not None]
    return Memory(
        images=np.concatenate([batch.rows.images(row) for row in chosen]),
        labels=labels[kept].astype(np.int64),
        written=written[kept].astype(np.int64),
        view=np.concatenate(view) if view else None,
    )


def _sums(state: AnchoredState, kept: Chosen) -> Sums:
    """What all images but those that are kept add up to."""
    batch, n_classes = state.batch, state.batch.n_classes
    found = Sums(np.zeros(n_classes), np.zeros(n_classes), np.zeros((n_classes, len(batch.middle))))
    if len(kept) == batch.n_queries:
        return found
    left = np.ones(batch.n_queries, bool)
    left[kept] = False
    shared = Forgotten(state.assignments.z, left)
    for chunk in state.run(sums_of_chunk, batch, shared, batch.chunks()):
        found = Sums(
            found.mass + chunk.mass, found.absence + chunk.absence, found.sums + chunk.sums
        )
    return found


def _products(state: AnchoredState, kept: Chosen) -> Float64[np.ndarray, "feature feature"]:
    """Sum x x' over all rows but those that are kept."""
    batch, shots, past = state.batch, state.moments.shots, state.past
    if len(kept) < batch.n_queries:
        rows = batch.rows.compared(kept) - batch.middle
        return state.moments.products - rows.T @ rows
    products = (shots.T @ shots).astype(np.float64)
    return products if past is None else products + past.products


def row_priorities(batch: AnchoredBatch, shared: None, chunk: slice) -> UInt64[np.ndarray, " row"]:
    """The hashes of the images of a chunk."""
    return priorities(batch.rows.images(chunk))


def sums_of_chunk(batch: AnchoredBatch, shared: Forgotten, chunk: slice) -> Sums:
    """What the images of a chunk that are not remembered add up to."""
    left = shared.rows[chunk]
    z = shared.z.of(chunk)[left]
    # Shares that are too small to be stored belong to someone: every image counts as one.
    z.data /= np.repeat(np.asarray(z.sum(1)).ravel(), np.diff(z.indptr))
    mass = np.bincount(z.indices, z.data, minlength=batch.n_classes)
    gone = np.log1p(-np.minimum(z.data, 0.9999).astype(np.float64))
    absence = np.bincount(z.indices, gone, minlength=batch.n_classes)
    return Sums(mass, absence, class_sums(z, batch.compared(chunk)[left]).astype(np.float64))
