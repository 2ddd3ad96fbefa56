"""Which images the page carries: a fair share of each queue, a few of each class."""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

import numpy as np
from jaxtyping import Int

from transduce.labeling.review_reasons import CHANGED, DUPLICATE, FAR, REASONS, TINY
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.table import LabelTable

MOST_QUEUED = 200
MOST_ON_SHEETS = 240
MOST_PER_SHEET = 6
MOST_SHEETS = 50


def queues(labels: LabelTable) -> dict[str, list[int]]:
    """Return the rows to look at by reason, the most urgent of each first."""
    by_reason: dict[str, list[int]] = {reason: [] for reason in REASONS}
    for row in np.flatnonzero(labels.needs_review):
        for reason in labels.reasons(int(row)):
            by_reason.setdefault(reason, []).append(int(row))
    for reason, rows in by_reason.items():
        urgency = _urgency(labels, reason)
        rows.sort(key=lambda row, by=urgency: by[row])  # type: ignore[misc]
    return {reason: rows for reason, rows in by_reason.items() if rows}


def _urgency(labels: LabelTable, reason: str) -> np.ndarray:
    """Return the sort key of a review reason, ascending."""
    if reason == FAR:
        return -labels.distance
    if reason == CHANGED:
        return -labels.zero_shot_score
    if reason in (DUPLICATE, TINY):
        return labels.score
    return labels.margin


def fair_share(rows_by_queue: Sequence[Sequence[int]], most: int) -> list[int]:
    """Take one row of each queue in turn, none twice, until there are `most`."""

    def in_turn() -> Iterator[int]:
        seen = set()
        for turn in zip_longest(*rows_by_queue):
            for row in turn:
                if row is not None and row not in seen:
                    seen.add(row)
                    yield row

    return list(islice(in_turn(), most))


def sheet_rows(labels: LabelTable, class_count: int) -> tuple[dict[int, list[list[int]]], int]:
    """Return typical and atypical rows by class index, and how many classes were left out."""
    counts = np.bincount(labels.label[labels.label != UNKNOWN], minlength=class_count)
    order = np.argsort(-counts, kind="stable")
    present = [int(k) for k in order if counts[k]]
    shown = present[:MOST_SHEETS]
    each = min(MOST_PER_SHEET, max(2, MOST_ON_SHEETS // (2 * max(1, len(shown)))))
    return {k: _ends(labels, k, each) for k in shown}, len(present) - len(shown)


def _ends(labels: LabelTable, index: int, each: int) -> list[list[int]]:
    """Return the surest rows of a class and the least sure, no row in both."""
    rows: Int[np.ndarray, " row"] = np.flatnonzero(labels.label == index)
    # Joint scores are often all but 1: beyond two digits the distance says more.
    order = rows[np.lexsort((labels.distance[rows], -labels.score[rows].round(2)))]
    typical = order[: min(each, (len(order) + 1) // 2)]
    atypical = order[len(typical) :][::-1][:each]
    return [typical.tolist(), atypical.tolist()]
