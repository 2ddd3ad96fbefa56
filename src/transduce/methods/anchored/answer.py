"""The answer of `Anchored`: the best classes of every image, and how sure they are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Float, Float32, Int

from transduce.methods.anchored.basis import in_features
from transduce.methods.anchored.last import answer_chunk, joined
from transduce.methods.anchored.model import AnchoredModel, LearnedClasses, tempered
from transduce.methods.anchored.past import Drift, Past
from transduce.methods.anchored.steps import AnchoredState
from transduce.methods.neighbors import agreement_nearby
from transduce.simplex.passes import in_threads
from transduce.simplex.probabilities import blocks, softmax
from transduce.task import Trace

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
        drift = None
        if state.past is not None:
            drift = Drift.of(state.past, classes[:, 0], looks, state.trusted)
            share = n / (n + state.past.count)  # one image alone says little of how sure to be
            power = float(np.exp(share * np.log(power) + (1.0 - share) * state.past.log_power))
            confidence = share * confidence + (1.0 - share) * state.past.confidence
        # Of a small batch, when asked for: roots of all its features take as long as all else.
        still = replace(state, run=in_threads)
        learned = partial(learned_of, still, looks, drift, confidence=confidence, power=power)
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
            "classes_present": _classes_present(classes[:, 0], scores[:, 0], batch.n_classes),
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
        nearby = agreement_nearby(batch.votes, classes[:, 0])
        evidence = {**found.evidence, "neighbors": nearby}
        return cls(classes, scores, batch.n_classes, trace, model, evidence, drift)

    def dense(self, dtype: np.dtype) -> Float[np.ndarray, "image class"]:
        """The probabilities of all classes (image, class)."""
        probabilities = np.zeros((len(self.classes), self.n_classes), dtype)
        np.put_along_axis(probabilities, self.classes, self.probabilities.astype(dtype), 1)
        return probabilities


def learned_of(
    state: AnchoredState,
    looks: Float32[np.ndarray, "image look"],
    drift: Drift | None,
    *,
    confidence: float,
    power: float,
) -> LearnedClasses:
    """What is remembered of a batch, in the features of its images."""
    whole = in_features(state)
    assert whole.classes is not None
    assert whole.scaling is not None
    past = past_of(whole, looks, drift, confidence=confidence, power=power)
    return LearnedClasses(whole.classes, whole.scaling.scale, whole.scaling.root, past)


def past_of(
    state: AnchoredState,
    looks: Float32[np.ndarray, "image look"],
    drift: Drift | None,
    *,
    confidence: float,
    power: float,
) -> Past:
    """The images of a batch as sums, with those of the past before it."""
    n, before, wide = state.batch.n_queries, state.past, looks.astype(np.float64)
    present, mass = state.assignments.present, state.assignments.mass
    whole = replace(state, trusted=None)
    count, far, sums, products = float(n), 0.0, wide.sum(0), wide.T @ wide
    weight = state.shot_weight
    if before is not None:
        present = 1.0 - (1.0 - present) * (1.0 - before.present)
        mass, count = mass + before.mass, count + before.count
        sums, products = sums + before.look_sums, products + before.look_products
        assert drift is not None
        far = (float(drift.far.sum()) + before.far * before.count) / count
    return Past(
        count=count,
        mass=mass,
        present=present,
        rows=float(state.n_rows()),
        every_mass=whole.every_mass(),
        every_sums=whole.every_sum(),
        products=state.moments.products,
        middle=state.batch.middle.astype(np.float64),
        shot_mass=state.every_shot_mass(),
        agreement=state.agreement,
        text_confidence=state.text_confidence,
        within_share=state.within_share,
        confidence=confidence,
        log_power=float(np.log(power)),
        shot_weight=np.nan if weight is None else weight,
        look_sums=sums,
        look_products=products,
        far=far,
    )


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
