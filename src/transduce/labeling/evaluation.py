"""Against the truth: accuracy with intervals, the gain with a paired test, reliability."""

import math

import numpy as np
from jaxtyping import Bool, Float32, Int

from transduce.encoders.class_names import ClassNames
from transduce.labeling.summary import Evaluation, Recall, ReliabilityBin
from transduce.labeling.table import UNKNOWN, LabelTable

Z95 = 1.959964  # of the normal distribution, two-sided
BINS = 10


def evaluate(table: LabelTable, classes: ClassNames) -> Evaluation | None:
    """The figures of the images whose truth is known; None if it is known of none.

    Corrected images are left out: they were given their label.
    """
    if table.truth is None:
        return None
    known = (table.truth != UNKNOWN) & ~table.corrected
    if not known.any():
        return None
    truth, label = table.truth[known], table.label[known]
    zero_shot, score = table.zero_shot_label[known], table.score[known]
    right, zero_shot_right = label == truth, zero_shot == truth
    mended = int((right & ~zero_shot_right).sum())
    broken = int((~right & zero_shot_right).sum())
    bins = _reliability(score, right)
    return Evaluation(
        images=int(known.sum()),
        accuracy=float(right.mean()),
        accuracy_interval=wilson(int(right.sum()), len(right)),
        zero_shot_accuracy=float(zero_shot_right.mean()),
        zero_shot_interval=wilson(int(zero_shot_right.sum()), len(right)),
        mended=mended,
        broken=broken,
        p_value=mcnemar(mended, broken),
        recalls=_recalls(truth, right, zero_shot_right, classes),
        confusion=_confusion(truth, label, len(classes)),
        reliability=bins,
        calibration_error=sum(
            abs(entry.confidence - entry.accuracy) * entry.images / len(right) for entry in bins
        ),
    )


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, 1927); never outside 0 to 1."""
    share, square = successes / trials, Z95**2 / trials
    middle = share + square / 2
    spread = Z95 * math.sqrt(share * (1 - share) / trials + square / trials / 4)
    low, high = (middle - spread) / (1 + square), (middle + spread) / (1 + square)
    return max(0.0, low), min(1.0, high)


def mcnemar(mended: int, broken: int) -> float:
    """McNemar's exact test: could as many have been mended and broken by chance?"""
    from scipy.stats import binomtest  # here, because it takes a second to import

    changed = mended + broken
    return 1.0 if changed == 0 else float(binomtest(mended, changed, 0.5).pvalue)


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
    place = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    bins = []
    for number in range(BINS):
        inside = place == number
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
