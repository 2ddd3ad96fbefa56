"""Labels against the truth: accuracy with intervals, gain with a paired test, reliability."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int

from transduce.encoders.class_names import ClassNames
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.table import LabelTable

Z95 = 1.959964  # of the normal distribution, two-sided
BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """How many images of one class were labeled with it, by zero-shot and jointly."""

    label: str
    images: int  # that are of this class
    zero_shot: float  # share of them labeled so; 0.0 without images
    joint: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Images whose score lies in [low, high): how sure they were, and how often right."""

    low: float
    high: float
    images: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Accuracy against the truth, with 95 % intervals (Wilson) and McNemar's exact test."""

    images: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    zero_shot_accuracy: float
    zero_shot_interval: tuple[float, float]
    fixed: int  # wrong by zero-shot, right now
    broken: int  # right by zero-shot, wrong now
    p_value: float
    recalls: tuple[Recall, ...]
    confusion: tuple[tuple[int, ...], ...]  # truth x label; the last column is unknown
    reliability: tuple[ReliabilityBin, ...]
    calibration_error: float

    @property
    def gain(self) -> float:
        """The accuracy minus zero-shot's."""
        return self.accuracy - self.zero_shot_accuracy


def evaluate_labels(
    table: LabelTable, truth: Int[np.ndarray, " image"], classes: ClassNames
) -> Evaluation | None:
    """Return the figures of the images whose truth is known; None if it is known of none.

    Corrected images are left out, because their label was given.
    """
    known = (truth != UNKNOWN) & ~table.corrected
    if not known.any():
        return None
    truth, label = truth[known], table.label[known]
    zero_shot, score = table.zero_shot_label[known], table.score[known]
    right, zero_shot_right = label == truth, zero_shot == truth
    fixed = int((right & ~zero_shot_right).sum())
    broken = int((~right & zero_shot_right).sum())
    bins = _reliability(score, right)
    return Evaluation(
        images=int(known.sum()),
        accuracy=float(right.mean()),
        accuracy_interval=wilson(int(right.sum()), len(right)),
        zero_shot_accuracy=float(zero_shot_right.mean()),
        zero_shot_interval=wilson(int(zero_shot_right.sum()), len(right)),
        fixed=fixed,
        broken=broken,
        p_value=mcnemar(fixed, broken),
        recalls=_recalls(truth, right, zero_shot_right, classes),
        confusion=_confusion(truth, label, len(classes)),
        reliability=bins,
        calibration_error=sum(
            abs(entry.confidence - entry.accuracy) * entry.images / len(right) for entry in bins
        ),
    )


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson, 1927), within 0 and 1."""
    share, square = successes / trials, Z95**2 / trials
    middle = share + square / 2
    spread = Z95 * math.sqrt(share * (1 - share) / trials + square / trials / 4)
    low, high = (middle - spread) / (1 + square), (middle + spread) / (1 + square)
    return max(0.0, low), min(1.0, high)


def mcnemar(fixed: int, broken: int) -> float:
    """Return the p-value of McNemar's exact test that fixed and broken are equally likely."""
    from scipy.stats import binomtest  # here, because it takes a second to import

    changed = fixed + broken
    return 1.0 if changed == 0 else float(binomtest(fixed, changed, 0.5).pvalue)


def _recalls(
    truth: Int[np.ndarray, " image"],
    right: Bool[np.ndarray, " image"],
    zero_shot_right: Bool[np.ndarray, " image"],
    classes: ClassNames,
) -> tuple[Recall, ...]:
    images = np.bincount(truth, minlength=len(classes))
    joint = np.bincount(truth[right], minlength=len(classes)) / np.maximum(images, 1)
    zero_shot = np.bincount(truth[zero_shot_right], minlength=len(classes)) / np.maximum(images, 1)
    return tuple(
        Recall(label=label, images=int(count), zero_shot=float(before), joint=float(after))
        for label, count, before, after in zip(
            classes.labels, images, zero_shot, joint, strict=True
        )
    )


def _confusion(
    truth: Int[np.ndarray, " image"], label: Int[np.ndarray, " image"], n_classes: int
) -> tuple[tuple[int, ...], ...]:
    counts = np.zeros((n_classes, n_classes + 1), np.int64)
    np.add.at(counts, (truth, label), 1)  # UNKNOWN is -1: the last column
    return tuple(tuple(int(count) for count in row) for row in counts)


def _reliability(
    score: Float32[np.ndarray, " image"], right: Bool[np.ndarray, " image"]
) -> tuple[ReliabilityBin, ...]:
    index = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    bins = []
    for number in range(BINS):
        inside = index == number
        if inside.any():
            bins.append(
                ReliabilityBin(
                    low=number / BINS,
                    high=(number + 1) / BINS,
                    images=int(inside.sum()),
                    confidence=float(score[inside].mean()),
                    accuracy=float(right[inside].mean()),
                )
            )
    return tuple(bins)
