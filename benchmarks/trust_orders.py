"""How many wrong labels a review finds first, by our order of doubt and by others."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int

from benchmarks.record import Row
from benchmarks.trust_sets import Batch
from transduce.labeling.trust.doubt import TO_CHECK, most_wrong

PARTS = (0.05, 0.1, 0.2)  # of the queue
TINY = 1e-6  # cleanlab's smallest number

Numbers = Float[np.ndarray, " image"]
Rows = Float[np.ndarray, "image class"]
Labels = Int[np.ndarray, " image"]


def self_confidence(labels: Labels, rows: Rows) -> Numbers:
    """cleanlab.rank.get_self_confidence_for_each_label."""
    return rows[np.arange(len(labels)), labels]


def normalized_margin(labels: Labels, rows: Rows) -> Numbers:
    """cleanlab.rank.get_normalized_margin_for_each_label."""
    others = rows.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return (self_confidence(labels, rows) - others.max(1) + 1.0) / 2.0


def confidence_weighted_entropy(labels: Labels, rows: Rows) -> Numbers:
    """cleanlab.rank.get_confidence_weighted_entropy_for_each_label."""
    kept = np.clip(rows.astype(np.float64), TINY, None)
    entropy = -(kept * np.log(kept)).sum(1) / np.log(rows.shape[1])
    ratio = entropy / np.clip(self_confidence(labels, rows), TINY, None)
    return np.log(ratio + 1.0) / np.clip(ratio, TINY, None)


CLEANLAB = {
    "self-confidence": self_confidence,
    "normalized margin": normalized_margin,
    "weighted entropy": confidence_weighted_entropy,
}


def _quality(
    score: Callable[[Labels, Rows], Numbers], batch: Batch, *, of_zero_shot: bool = False
) -> Numbers:
    """How low cleanlab's quality of our labels is, by the probabilities of one of two models."""
    return -score(batch.label, batch.zero_shot if of_zero_shot else batch.probabilities)


def _entropy(batch: Batch) -> Numbers:
    kept = np.maximum(batch.probabilities.astype(np.float64), 1e-30)
    return -(kept * np.log(kept)).sum(1)


# How doubtful each label is; larger is reviewed earlier.
ORDERS: dict[str, Callable[[Batch], Numbers]] = {
    "doubt": lambda batch: batch.doubt,
    "max probability": lambda batch: -batch.probabilities.max(1),
    "margin": lambda batch: -normalized_margin(batch.label, batch.probabilities),
    "entropy": _entropy,
    **{f"cleanlab {name}, joint": partial(_quality, score) for name, score in CLEANLAB.items()},
    **{
        f"cleanlab {name}, zero-shot": partial(_quality, score, of_zero_shot=True)
        for name, score in CLEANLAB.items()
    },
}


def measure(drawn: Iterable[Batch]) -> Row:
    """The share of all wrong labels in the first parts of the queue, and the calibration."""
    found, apart = ({name: np.zeros(len(PARTS)) for name in ORDERS} for _ in range(2))
    doubt, wrong, within = [], [], []
    for batch in drawn:
        doubt.append(batch.doubt)
        wrong.append(batch.wrong)
        fine = batch.doubt < TO_CHECK
        most = np.ceil(most_wrong(batch.doubt[fine], batch.label[fine]))
        within.append(bool(batch.wrong[fine].sum() <= most))
        ours = early(batch.doubt) & batch.wrong
        for name, order in ORDERS.items():
            theirs = early(order(batch)) & batch.wrong
            found[name] += theirs.sum(1)
            apart[name] += (ours != theirs).sum(1)
    every, errors = np.concatenate(doubt), np.concatenate(wrong)
    total = max(1, int(errors.sum()))
    check = every >= TO_CHECK
    return {
        "images": len(errors),
        "wrong": int(errors.sum()),
        "found": {
            name: np.round(100 * counts / total, 2).tolist() for name, counts in found.items()
        },
        # Of the difference from `doubt`, if errors were independent: the errors that one of the
        # two finds and the other does not.
        "standard_error": {
            name: np.round(100 * np.sqrt(counts) / total, 2).tolist()
            for name, counts in apart.items()
        },
        "expected_wrong": round(float(every.sum()), 1),
        "calibration_error": round(100 * _calibration_error(every, errors), 2),
        "to_check": int(check.sum()),
        "to_check_wrong": int(errors[check].sum()),
        "to_check_expected": round(float(every[check].sum()), 1),
        "batches": len(within),
        "within": sum(within),
    }


def early(order: Numbers) -> Bool[np.ndarray, "part image"]:
    """Whether each image is in the first parts of the queue."""
    rank = np.empty(len(order), np.int64)
    rank[np.argsort(-order, kind="stable")] = np.arange(len(order))
    return np.array([rank < max(1, round(part * len(order))) for part in PARTS])


def _calibration_error(doubt: Numbers, wrong: Bool[np.ndarray, " image"], bins: int = 10) -> float:
    """Expected calibration error over bins of equally many images."""
    parts = np.array_split(np.argsort(doubt, kind="stable"), bins)
    gaps = [abs(doubt[part].mean() - wrong[part].mean()) * len(part) for part in parts]
    return float(sum(gaps) / len(doubt))
