"""How sure a label is, and what there is to look at, in words."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float32, Int

from transduce.labeling.table import (
    BETWEEN_REASONS,
    CHANGED,
    CLOSE_CALL,
    DUPLICATE,
    FAR,
    TINY,
    UNKNOWN,
)

CLOSE_MARGIN = 0.4
SURE_ZERO_SHOT = 0.8
FAR_DEVIATIONS = 3.0  # robust standard deviations beyond the median distance
FEWEST_FOR_FAR = 20  # images; with less there is no telling what is usual
TINY_CLASS = 2
NORMAL = 1.4826  # median absolute deviation to standard deviation

Rows = Float32[np.ndarray, "image class"]


def top_two(probabilities: Rows) -> tuple[Int[np.ndarray, " image"], Rows]:
    """The likeliest class, and the probabilities of the first and the second."""
    label = probabilities.argmax(1)
    best = np.take_along_axis(probabilities, label[:, np.newaxis], 1)[:, 0]
    second = np.partition(probabilities, -2, axis=1)[:, -2]
    return label, np.stack([best, second], 1)


def entropy_share(probabilities: Rows) -> Float32[np.ndarray, " image"]:
    """The entropy over its maximum: 0 for a sure thing, 1 for no idea."""
    positive = np.maximum(probabilities, np.finfo(np.float32).tiny)
    entropy = -(probabilities * np.log(positive)).sum(1) / np.log(probabilities.shape[1])
    share: Float32[np.ndarray, " image"] = np.clip(entropy, 0.0, 1.0).astype(np.float32)
    return share


def far_away(distance: Float32[np.ndarray, " image"]) -> Bool[np.ndarray, " image"]:
    """Images whose nearest class is unusually far, compared with the others of the run."""
    median = np.median(distance)
    deviation = NORMAL * np.median(np.abs(distance - median))
    if len(distance) < FEWEST_FOR_FAR or deviation == 0.0:
        return np.zeros(len(distance), bool)
    far: Bool[np.ndarray, " image"] = distance > median + FAR_DEVIATIONS * deviation
    return far


def conflicting(
    file_name: Sequence[str], duplicate_of: Sequence[str], label: Int[np.ndarray, " image"]
) -> Bool[np.ndarray, " image"]:
    """Images with the same content as another that has another label."""
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
    counts = np.bincount(label[label != UNKNOWN], minlength=n_classes)
    if len(label) < FEWEST_FOR_FAR:
        return np.zeros(len(label), bool)
    tiny: Bool[np.ndarray, " image"] = (label != UNKNOWN) & (counts[label] <= TINY_CLASS)
    return tiny


def reasons_of(
    *,
    margin: Float32[np.ndarray, " image"],
    changed: Bool[np.ndarray, " image"],
    zero_shot_score: Float32[np.ndarray, " image"],
    far: Bool[np.ndarray, " image"],
    conflict: Bool[np.ndarray, " image"],
    tiny: Bool[np.ndarray, " image"],
    settled: Bool[np.ndarray, " image"],
) -> tuple[str, ...]:
    """Why each image should be looked at; "" for those that need not, and the settled ones."""
    flags = {
        CLOSE_CALL: margin < CLOSE_MARGIN,
        CHANGED: changed & (zero_shot_score >= SURE_ZERO_SHOT),
        FAR: far,
        DUPLICATE: conflict,
        TINY: tiny,
    }
    reasons = [""] * len(margin)
    for reason, flagged in flags.items():
        for row in np.flatnonzero(flagged & ~settled):
            reasons[row] += (BETWEEN_REASONS if reasons[row] else "") + reason
    return tuple(reasons)
