"""What solving again changed, in figures for the page."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, label_names

MOST_SHOWN = 12


def describe_changes(before: RunDirectory, after: RunDirectory) -> dict[str, Any]:
    """Return the changes between two runs of the same images in the same order."""
    moved = np.flatnonzero(before.labels.label != after.labels.label)
    names = label_names(after.classes)
    counts: dict[tuple[str, str], int] = {}
    for row in moved:
        pair = (names[before.labels.label[row]], names[after.labels.label[row]])
        counts[pair] = counts.get(pair, 0) + 1
    largest = sorted(counts.items(), key=lambda item: -item[1])[:MOST_SHOWN]
    by_hand = int(after.labels.corrected[moved].sum())
    return {
        "run": str(after.folder),
        "changed": len(moved),
        "by_hand": by_hand,
        "others": len(moved) - by_hand,
        "moves": [{"before": old, "after": new, "images": count} for (old, new), count in largest],
        "review_before": before.summary.needs_review,
        "review_after": after.summary.needs_review,
        "accuracy": _accuracy(before, after, np.ones(len(after.labels), bool)),
        "accuracy_of_others": _accuracy(before, after, ~after.labels.corrected),
        "warnings": list(after.summary.warnings),
    }


def _accuracy(
    before: RunDirectory, after: RunDirectory, chosen: Bool[np.ndarray, " image"]
) -> dict[str, float] | None:
    """Return the accuracy of the `chosen` images in both runs; None without a truth of any."""
    truth = after.labels.truth
    if truth is None:
        return None
    known = chosen & (truth != UNKNOWN)
    if not known.any():
        return None
    old, new = (float((run.labels.label == truth)[known].mean()) for run in (before, after))
    return {"images": int(known.sum()), "before": old, "after": new}
