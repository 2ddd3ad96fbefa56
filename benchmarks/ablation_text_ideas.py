"""Ideas about what the text says of images that did not make it; as in `ablation_ideas`."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from benchmarks.ablation_ideas import Replaced
from transduce.methods.anchored import Anchored
from transduce.methods.anchored.batch import AnchoredBatch
from transduce.methods.anchored.entries import Entries, StoredRows
from transduce.methods.anchored.past import ShotFit
from transduce.methods.anchored.scores import ChunkScores
from transduce.methods.anchored.steps import AnchoredState, Assignments

SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4, 1.6)  # times 100
SURE_OF_SCALE = 10.0  # of log scale squared: what is lost by leaving 1
CALIBRATED_AT = 1  # image step
RENAMED_AT = 6  # image step
FEWEST_RENAMED = 3  # images of a group
NEARBY = 0.5  # how much of the text's scores is those of the neighbors


def calibrated_text() -> list[Replaced]:
    """The text's scale is the one at which it foretells best what the images say, once.

    The answers by images and counts do not know what the text says of the image itself.
    """
    weigh = AnchoredState.weighted
    steps: dict[int, int] = {}

    def weighted(self: AnchoredState, shots: ShotFit | None) -> AnchoredState:
        state, key = weigh(self, shots), id(self.batch.votes)
        steps[key] = steps.get(key, -1) + 1
        if steps[key] != CALIBRATED_AT:
            return state
        batch, tables = state.batch, replace(state.step(), vote_weight=0.0)
        scores = ChunkScores(batch, tables, slice(0, batch.n_queries), apart=True)
        parts = zip(*scores.over_blocks(scores.parts), strict=True)
        text, counts, image = (np.concatenate(part) for part in parts)
        answers = (image + counts).argmax(1)[:, np.newaxis]
        fits = []
        for scale in SCALES:
            scored = np.float32(scale) * text + counts
            scored -= scored.max(1, keepdims=True)
            own = np.take_along_axis(scored, answers, 1)[:, 0]
            fit = float((own - np.log(np.exp(scored).sum(1))).sum())
            fits.append(fit - SURE_OF_SCALE * float(np.log(scale)) ** 2)
        best = np.float32(SCALES[int(np.argmax(fits))])
        known = None if batch.text_scores is None else best * batch.text_scores
        return replace(state, batch=replace(batch, texts=best * batch.texts, text_scores=known))

    return [(AnchoredState, "weighted", weighted)]


def neighbors_smooth_text() -> list[Replaced]:
    """In the first steps, half of the text's scores of an image are those of its neighbors."""
    first, assign = AnchoredState.__dict__["first"].__func__, AnchoredState.assigned
    alone: dict[int, np.ndarray | None] = {}

    def smoothed(batch: AnchoredBatch) -> AnchoredBatch:
        if batch.votes is None or not batch.votes.nnz:
            return batch
        text = batch.rows.images(slice(0, batch.n_queries)) @ batch.texts.T
        near = batch.votes[:, : batch.n_queries]
        near = sp.diags_array(1.0 / np.maximum(near.sum(1), 1e-9)) @ near
        mixed = ((1.0 - NEARBY) * text + NEARBY * (near @ text)).astype(np.float32)
        alone[id(batch.votes)] = batch.text_scores
        return replace(batch, text_scores=mixed)

    def started(
        cls: type[AnchoredState], method: Anchored, batch: AnchoredBatch, *others: object
    ) -> AnchoredState:
        return first(cls, method, smoothed(batch), *others)

    def assigned(self: AnchoredState, *, with_sums: bool) -> AnchoredState:
        found = assign(self, with_sums=with_sums)
        if not with_sums or id(self.batch.votes) not in alone:
            return found
        batch = replace(self.batch, text_scores=alone[id(self.batch.votes)])
        return replace(found, batch=batch)

    return [(AnchoredState, "first", classmethod(started)), (AnchoredState, "assigned", assigned)]


def groups_renamed() -> list[Replaced]:
    """All images of a name go to the name that the text likes best for them as a group, once."""
    assign = AnchoredState.assigned
    steps: dict[int, int] = {}

    def assigned(self: AnchoredState, *, with_sums: bool) -> AnchoredState:
        state, key = assign(self, with_sums=with_sums), id(self.batch.votes)
        steps[key] = steps.get(key, -1) + int(with_sums)
        if not with_sums or steps[key] != RENAMED_AT:
            return state
        return replace(state, assignments=_renamed(state))

    return [(AnchoredState, "assigned", assigned)]


def _renamed(state: AnchoredState) -> Assignments:
    found, batch = state.assignments, state.batch
    z = found.z.whole()
    text = batch.rows.images(slice(0, batch.n_queries)) @ batch.texts.T
    names = np.arange(batch.n_classes)
    for name in np.flatnonzero(found.mass >= FEWEST_RENAMED):
        names[name] = int((z[:, [name]].T @ text).argmax())
    ones = np.ones(len(names), np.float32)
    move = sp.csr_array((ones, (np.arange(len(names)), names)), shape=(len(names),) * 2)
    absent = np.ones(len(names))
    np.multiply.at(absent, names, 1.0 - found.present)
    assert found.sums is not None
    return Assignments(
        StoredRows((Entries.of(sp.csr_array(z @ move)),)),
        move.T @ found.mass,
        1.0 - absent,
        move.T @ found.sums,
    )
