"""The last pass of `Anchored` over the images: their best classes, and what speaks for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from jaxtyping import Float32, Int

from transduce.methods.anchored.columns import first_classes, log_shares
from transduce.methods.anchored.passes import BEST, AnchoredBatch
from transduce.methods.anchored.scores import ChunkScores, StepTables

EVIDENCE = ("text", "image")  # of a label; see `Anchored`


@dataclass(frozen=True)
class ChunkAnswer:
    """The best classes of each image of a chunk, with their scores; and sums for the confidence."""

    classes: Int[np.ndarray, "row best"]
    scores: Float32[np.ndarray, "row best"]  # without the votes
    joint: float  # sum of the largest probabilities
    as_text: int
    as_images: int
    changed: int
    evidence: Mapping[str, Float32[np.ndarray, " row"]]
    looks: Float32[np.ndarray, "row look"]  # distance from the nearest name, and doubt about it


def answer_chunk(batch: AnchoredBatch, step: StepTables, chunk: slice) -> ChunkAnswer:
    """The answer of the last step."""
    scores = ChunkScores(batch, step, chunk, apart=True)
    best, size = min(BEST, scores.columns.width), chunk.stop - chunk.start
    classes, kept = np.empty((size, best), np.int32), np.empty((size, best), np.float32)
    before = scores.largest()
    evidence = {name: np.empty(size, np.float32) for name in EVIDENCE}
    looks = np.empty((size, 2), np.float32)
    text_scale = np.linalg.norm(batch.texts[0])

    def fill(rows: slice) -> tuple[float, int, int, int]:
        text, counts, image = scores.parts(rows)
        unvoted = text + counts + image
        voted = scores.with_votes(unvoted.copy(), rows)
        order = first_classes(voted, best)
        classes[rows] = scores.columns.classes(order, rows)
        kept[rows] = np.take_along_axis(unvoted, order, 1)
        label = order[:, :1]
        nearest, by_text, evidence["text"][rows] = log_shares(text, label)
        looks[rows, 0] = 1.0 - nearest / text_scale
        looks[rows, 1] = 1.0 - np.exp(by_text)
        as_text = int((text.argmax(1) == order[:, 0]).sum())
        text += counts
        image += counts
        _, _, evidence["image"][rows] = log_shares(image, label)
        as_images = int((text.argmax(1) == image.argmax(1)).sum())
        changed = int((before[rows] != classes[rows, 0]).sum())
        _, sure, _ = log_shares(voted, label)
        return float(np.exp(sure).sum()), as_text, as_images, changed

    sums = zip(*scores.over_blocks(fill), strict=True)
    joint, as_text, as_images, changed = (sum(part) for part in sums)
    return ChunkAnswer(classes, kept, joint, as_text, as_images, changed, evidence, looks)


def joined(chunks: Iterator[ChunkAnswer], n_images: int) -> ChunkAnswer:
    """The answers of all chunks as one; none of them is kept beside it."""
    first = next(chunks)
    size, best = first.classes.shape
    if size == n_images:  # what came from another process cannot be written to
        return replace(first, scores=np.require(first.scores, requirements="W"))
    classes = np.empty((n_images, best), first.classes.dtype)
    scores, looks = np.empty((n_images, best), np.float32), np.empty((n_images, 2), np.float32)
    evidence = {name: np.empty(n_images, np.float32) for name in EVIDENCE}
    sums, start = np.zeros(4), 0
    for chunk in chain([first], chunks):
        rows = slice(start, start + len(chunk.classes))
        classes[rows], scores[rows], looks[rows] = chunk.classes, chunk.scores, chunk.looks
        for name in EVIDENCE:
            evidence[name][rows] = chunk.evidence[name]
        sums += chunk.joint, chunk.as_text, chunk.as_images, chunk.changed
        start = rows.stop
    joint, *counts = sums.tolist()
    as_text, as_images, changed = map(round, counts)
    return ChunkAnswer(classes, scores, joint, as_text, as_images, changed, evidence, looks)
