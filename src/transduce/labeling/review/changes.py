"""What solving again changed, for the page, and the answers that go from run to run."""

from typing import Any, Literal

import numpy as np
from jaxtyping import Bool

from transduce.labeling.journal import line_of
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, label_names

MOST_SHOWN = 12
MOST_LISTED = 120


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
        "images": [
            {
                "row": int(row),
                "file_name": after.labels.file_name[row],
                "before": names[before.labels.label[row]],
                "after": names[after.labels.label[row]],
            }
            for row in moved[~after.labels.corrected[moved]][:MOST_LISTED]
        ],
        "moves": [{"before": old, "after": new, "images": count} for (old, new), count in largest],
        "review_before": before.summary.needs_review,
        "review_after": after.summary.needs_review,
        "accuracy": _accuracy(before, after, np.ones(len(after.labels), bool)),
        "accuracy_of_others": _accuracy(before, after, ~after.labels.corrected),
        "warnings": list(after.summary.warnings),
    }


def carry_answers(
    source: RunDirectory, target: RunDirectory, kind: Literal["review", "audit"]
) -> int:
    """Take the answers of a kind that `target` does not have over from `source`; returns how many.

    The draws of an audit stay behind: they are of the labels that were there when it was drawn.
    """
    old, journal = source.journal(), target.journal()
    given, known = (getattr(answers, kind) for answers in (old, journal))
    missed, there = (answers.new_classes if kind == "review" else {} for answers in (old, journal))
    lines = []
    for name, label in given.items():
        if known.get(name) != label or missed.get(name) != there.get(name):
            facts = {"from": source.folder.name}
            if name in missed:
                facts["new_class"] = missed[name]
            lines.append(line_of(kind, name, label, facts))
    if lines:
        journal.append_lines(lines)
    return len(lines)


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
