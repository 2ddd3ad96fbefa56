"""What a second solution changed, in figures for the page."""

from typing import Any

import numpy as np

from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.table import UNKNOWN_LABEL

MOST_SHOWN = 12


def describe_changes(before: RunDirectory, after: RunDirectory) -> dict[str, Any]:
    """Both runs have the same images in the same order."""
    moved = np.flatnonzero(before.labels.label != after.labels.label)
    names = (*after.classes.labels, UNKNOWN_LABEL)  # UNKNOWN is -1: the last
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
        "moves": [{"before": old, "after": new, "images": count}
                  for (old, new), count in largest],
        "review_before": before.summary.needs_review,
        "review_after": after.summary.needs_review,
        "accuracy_before": _accuracy(before),
        "accuracy_after": _accuracy(after),
        "warnings": list(after.summary.warnings),
    }  # fmt: skip


def _accuracy(run: RunDirectory) -> float | None:
    return run.summary.evaluation.accuracy if run.summary.evaluation else None
