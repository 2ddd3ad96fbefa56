"""The answer of `Anchored`: the best classes of every image, what speaks for them, and how sure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import final

import numpy as np
from jaxtyping import Float, Float32, Int

from transduce.methods.anchored.batch import AnchoredBatch
from transduce.methods.anchored.columns import first_classes, log_shares
from transduce.methods.anchored.drift import Drift
from transduce.methods.anchored.model import AnchoredModel, learned_of, tempered
from transduce.methods.anchored.named import LabelSums
from transduce.methods.anchored.passes import BEST
from transduce.methods.anchored.scores import ChunkScores, StepTables
from transduce.methods.anchored.steps import AnchoredState
from transduce.methods.neighbors import agreement_nearby
from transduce.simplex.passes import in_threads
from transduce.simplex.probabilities import blocks, softmax
from transduce.task import Trace

EVIDENCE = ("text", "image")  # of a label; see `Anchored`
LEAST_CONFIDENT, MOST_CONFIDENT = 0.02, 0.995


@final
@dataclass(frozen=True)
class AnchoredAnswer:
    """The best classes of every image with their probabilities; all others have 0.

    Parameters
    ----------
    classes : array of int of shape (image, best)
        The likeliest classes of each image, the label first.
    probabilities : array of shape (image, best)
        Their probabilities, which sum to one; the label's is the largest.
    n_classes : int
        Number of classes, present or not.
    trace : Trace
        What was estimated of the batch.
    model : AnchoredModel
        For new images.
    evidence : mapping of str to array of shape (image,)
        What speaks for the label of each image; see `Anchored`.
    drift : Drift, optional
        How the images differ from those of the past, if there is one.
    """

    classes: Int[np.ndarray, "image best"]
    probabilities: Float32[np.ndarray, "image best"]
    n_classes: int
    trace: Trace
    model: AnchoredModel
    evidence: Mapping[str, Float32[np.ndarray, " image"]]
    drift: Drift | None = None

    @classmethod
    def of(cls, state: AnchoredState) -> "AnchoredAnswer":
        """The answer of the last step."""
        batch, prior, n = state.batch, state.prior, state.batch.n_queries
        found = joined(state.run(answer_chunk, batch, state.step(), batch.chunks()), n)
        classes, scores, looks = found.classes, found.scores, found.looks
        # Votes decide labels, but say nothing of how sure an image is: a label keeps its rank.
        scores[:, 0] = scores.max(1)
        # The joint answer is too sure of itself where counts and votes decide; how often text,
        # images and answer agree says how often it is right.
        joint = found.joint / n
        agree = (found.as_text + found.as_images) / (2 * n)
        # With shots, how often they are named rightly says it, for images of their classes.
        agree = (1.0 - state.shots_part) * agree + state.shots_part * state.shots_right
        confidence = joint - prior.weight * (joint - agree)
        confidence = float(np.clip(confidence, LEAST_CONFIDENT, MOST_CONFIDENT))
        changed = found.changed / n
        power = _power(scores, confidence)
        drift, labels, new = None, classes[:, 0], slice(0, n)
        if state.before is not None:  # after the new images come those that are remembered
            new = slice(0, n - len(state.before.memory))
            looks, again = looks[new], labels[new.stop :]
            drift = Drift.of(state.before, labels[new], looks, state.trusted, again)
        if state.past is not None:
            share = n / (n + state.past.count)  # one image alone says little of how sure to be
            power = float(np.exp(share * np.log(power) + (1.0 - share) * state.past.log_power))
            confidence = share * confidence + (1.0 - share) * state.past.confidence
        # Of a small batch, when asked for: roots of all its features take as long as all else.
        still = replace(state, run=in_threads)
        learned = partial(
            learned_of, still, labels, looks, drift, confidence=confidence, power=power
        )
        assert state.classes is not None
        model = AnchoredModel(
            texts=batch.texts,
            prior=prior,
            image_weight=state.image_weight,
            middle=batch.in_features.middle,
            power=power,
            learned=learned() if batch.basis is None else learned,
        )
        for rows in blocks(*scores.shape):
            scores[rows] = tempered(scores[rows], power)
        estimates = {
            "concentration": prior.concentration,
            "classes_present": _classes_present(labels[new], scores[new, 0], batch.n_classes),
            "prior_weight": prior.weight,
            "agreement": state.agreement,
            "text_confidence": state.text_confidence,
            "image_weight": state.image_weight,
            "within_variance": state.classes.within / state.classes.total,
            "confidence": confidence,
            "changed": changed,
            "neighbor_recall": batch.neighbor_recall,
        }
        steps = state.method.text_steps + state.method.image_steps
        trace = Trace((), iterations=steps, converged=changed == 0.0, estimates=estimates)
        assert batch.votes is not None
        leads = found.named.leads(batch.texts)
        leads[state.every_shot_mass() > 0] = np.inf  # these names are known to be right
        nearby = agreement_nearby(batch.votes, labels)
        evidence = {**found.evidence, "neighbors": nearby, "named": leads[labels]}
        evidence = {name: array[new] for name, array in evidence.items()}
        return cls(classes[new], scores[new], batch.n_classes, trace, model, evidence, drift)

    def dense(self, dtype: np.dtype) -> Float[np.ndarray, "image class"]:
        """The probabilities of all classes (image, class)."""
        probabilities = np.zeros((len(self.classes), self.n_classes), dtype)
        np.put_along_axis(probabilities, self.classes, self.probabilities.astype(dtype), 1)
        return probabilities


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
    named: LabelSums


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
    named = scores.label_sums(classes[:, 0])
    return ChunkAnswer(classes, kept, joint, as_text, as_images, changed, evidence, looks, named)


def joined(chunks: Iterator[ChunkAnswer], n_images: int) -> ChunkAnswer:
    """The answers of all chunks as one; none of them is kept beside it."""
    first = next(chunks)
    size, best = first.classes.shape
    if size == n_images:  # what came from another process cannot be written to
        return replace(first, scores=np.require(first.scores, requirements="W"))
    classes = np.empty((n_images, best), first.classes.dtype)
    scores, looks = np.empty((n_images, best), np.float32), np.empty((n_images, 2), np.float32)
    evidence = {name: np.empty(n_images, np.float32) for name in EVIDENCE}
    sums, start, named = np.zeros(4), 0, None
    for chunk in chain([first], chunks):
        named = chunk.named if named is None else named.plus(chunk.named)
        rows = slice(start, start + len(chunk.classes))
        classes[rows], scores[rows], looks[rows] = chunk.classes, chunk.scores, chunk.looks
        for name in EVIDENCE:
            evidence[name][rows] = chunk.evidence[name]
        sums += chunk.joint, chunk.as_text, chunk.as_images, chunk.changed
        start = rows.stop
    joint, *counts = sums.tolist()
    as_text, as_images, changed = map(round, counts)
    assert named is not None
    return ChunkAnswer(classes, scores, joint, as_text, as_images, changed, evidence, looks, named)


def _classes_present(
    labels: Int[np.ndarray, " image"], right: Float32[np.ndarray, " image"], n_classes: int
) -> float:
    """The expected number of classes of which at least one label is right.

    Wrong labels name classes that are not there; `right` is each label's probability.
    """
    wrong = np.log1p(-np.minimum(right.astype(np.float64), 0.9999))
    return float(-np.expm1(np.bincount(labels, wrong, minlength=n_classes)).sum())


def _power(scores: Float32[np.ndarray, "row best"], confidence: float) -> float:
    """The power at which the mean first entry of softmax(power scores) is `confidence`."""
    low, high = 0.02, 5.0
    for _ in range(25):
        power = (low * high) ** 0.5
        sure = sum(
            float(softmax(np.float32(power) * scores[rows])[:, 0].sum(dtype=np.float64))
            for rows in blocks(*scores.shape)
        )
        if sure / len(scores) > confidence:
            high = power
        else:
            low = power
    return power
