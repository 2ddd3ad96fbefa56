"""How sure each label is, and why an image should be looked at, in words."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from transduce.labeling.settings import UNKNOWN
from transduce.labeling.trust.doubt import TO_CHECK

# The reasons to look at an image; `LabelTable.reason` is these phrases, joined by "; ".
CLOSE_CALL = "close call"
CHANGED = "changed from a sure zero-shot label"
FAR = "far from every class"
DUPLICATE = "a duplicate has another label"
TINY = "one of very few in its class"
NEIGHBORS = "images like it have other labels"
DOUBTFUL = "doubtful"
REASONS = (CLOSE_CALL, NEIGHBORS, CHANGED, FAR, DUPLICATE, TINY, DOUBTFUL)
BETWEEN_REASONS = "; "

CLOSE_MARGIN = 0.4
SURE_ZERO_SHOT = 0.8
FAR_DEVIATIONS = 2.25  # robust standard deviations beyond the median
FEWEST_FOR_FAR = 20  # images; with fewer, what is usual cannot be estimated
TINY_CLASS = 2
FEW_ALIKE = 0.5  # of the images around it have the same label
SOFTER = 0.6  # of the encoder's own scale
NORMAL = 1.4826  # median absolute deviation to standard deviation

Rows = Float32[np.ndarray, "image class"]


def top_two(probabilities: Rows) -> tuple[Int[np.ndarray, " image"], Rows]:
    """Return the likeliest class (image,) and the two largest probabilities (image, 2)."""
    label = probabilities.argmax(1)
    best = np.take_along_axis(probabilities, label[:, np.newaxis], 1)[:, 0]
    second = np.partition(probabilities, -2, axis=1)[:, -2]
    return label, np.stack([best, second], 1)


def entropy_share(probabilities: Rows) -> Float32[np.ndarray, " image"]:
    """Return the entropy over its maximum log K: 0 for one certain class, 1 for all alike."""
    positive = np.maximum(probabilities, np.finfo(np.float32).tiny)
    entropy = -(probabilities * np.log(positive)).sum(1) / np.log(probabilities.shape[1])
    return np.clip(entropy, 0.0, 1.0).astype(np.float32)


def names_entropy(scores: Float[np.ndarray, "image class"]) -> Float32[np.ndarray, " image"]:
    """Return the entropy of softmax(0.6 scores) of each image: between how many classes it lies.

    An image of no class lies between many, one that is hard to tell between two look-alikes. The
    encoder's own probabilities are so sharp that they show little but look-alikes.

    Parameters
    ----------
    scores : array of shape (image, class)
        100 x cosine, up to a constant per row.
    """
    softer = SOFTER * (scores - scores.max(1, keepdims=True))
    shares = np.exp(softer)
    total = shares.sum(1)
    entropy = np.log(total) - np.einsum("ik,ik->i", shares, softer) / total
    return entropy.astype(np.float32, copy=False)


def strangeness(
    distance: Float32[np.ndarray, " image"], undecided: Float32[np.ndarray, " image"]
) -> Float32[np.ndarray, " image"]:
    """Return how much each image looks like one of no class, compared with the others of the run.

    The standardized distance from the nearest class plus the standardized entropy of the names.
    """
    parts = (distance.astype(np.float64), undecided.astype(np.float64))
    total = sum((part - part.mean()) / (part.std() or 1.0) for part in parts)
    return np.asarray(total, np.float32)


def far_away(strange: Float32[np.ndarray, " image"]) -> Bool[np.ndarray, " image"]:
    """Flag images that are unusually strange, compared with the others of the run."""
    median = np.median(strange)
    deviation = NORMAL * np.median(np.abs(strange - median))
    if len(strange) < FEWEST_FOR_FAR or deviation == 0.0:
        return np.zeros(len(strange), bool)
    return strange > median + FAR_DEVIATIONS * deviation


def conflicting(
    file_name: Sequence[str], duplicate_of: Sequence[str], label: Int[np.ndarray, " image"]
) -> Bool[np.ndarray, " image"]:
    """Flag images with the same content as another that has another label."""
    first = {name: row for row, name in enumerate(file_name)}
    groups: dict[int, list[int]] = {}
    for row, name in enumerate(duplicate_of):
        if name in first:
            groups.setdefault(first[name], [first[name]]).append(row)
    conflict = np.zeros(len(label), bool)
    for rows in groups.values():
        if len(np.unique(label[rows])) > 1:
            conflict[rows] = True
    return conflict


def in_tiny_classes(label: Int[np.ndarray, " image"], n_classes: int) -> Bool[np.ndarray, " image"]:
    """Flag images whose label at most TINY_CLASS images have."""
    counts = np.bincount(label[label != UNKNOWN], minlength=n_classes)
    if len(label) < FEWEST_FOR_FAR:
        return np.zeros(len(label), bool)
    return (label != UNKNOWN) & (counts[label] <= TINY_CLASS)


def reasons_of(
    *,
    doubt: Float32[np.ndarray, " image"],
    margin: Float32[np.ndarray, " image"],
    neighbors: Float32[np.ndarray, " image"],
    changed: Bool[np.ndarray, " image"],
    zero_shot_score: Float32[np.ndarray, " image"],
    far: Bool[np.ndarray, " image"],
    conflict: Bool[np.ndarray, " image"],
    tiny: Bool[np.ndarray, " image"],
    settled: Bool[np.ndarray, " image"],
) -> tuple[str, ...]:
    """Return why each image is to be checked; "" for none, and for `settled` images.

    An image is to be checked if its label is doubtful, far from every class, or not that of a
    duplicate; the other reasons say more of such images.
    """
    check = (doubt >= TO_CHECK) | far | conflict
    flags = {
        CLOSE_CALL: margin < CLOSE_MARGIN,
        NEIGHBORS: neighbors < FEW_ALIKE,
        CHANGED: changed & (zero_shot_score >= SURE_ZERO_SHOT),
        FAR: far,
        DUPLICATE: conflict,
        TINY: tiny,
    }
    flags[DOUBTFUL] = ~np.any(list(flags.values()), axis=0)
    reasons = [""] * len(margin)
    for reason, flagged in flags.items():
        for row in np.flatnonzero(flagged & check & ~settled):
            reasons[row] += (BETWEEN_REASONS if reasons[row] else "") + reason
    return tuple(reasons)
