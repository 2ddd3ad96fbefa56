"""Which images the page carries: a fair share of each queue, a few of each class."""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

import numpy as np
from jaxtyping import Int

from transduce.labeling.table import CHANGED, DUPLICATE, FAR, REASONS, TINY, UNKNOWN, LabelTable

MOST_QUEUED = 200
MOST_ON_SHEETS = 240
MOST_PER_SHEET = 6
MOST_SHEETS = 50


def queues(labels: LabelTable) -> dict[str, list[int]]:
    """The rows to look at by reason, the most urgent of each first."""
    found: dict[str, list[int]] = {reason: [] for reason in REASONS}
    for row in np.flatnonzero(labels.needs_review):
        for reason in labels.reasons(int(row)):
            found.setdefault(reason, []).append(int(row))
    for reason, rows in found.items():
        urgency = _urgency(labels, reason)
        rows.sort(key=lambda row, by=urgency: by[row])  # type: ignore[misc]
    return {reason: rows for reason, rows in found.items() if rows}


def _urgency(labels: LabelTable, reason: str) -> np.ndarray:
    """Smaller is sooner."""
    if reason == FAR:
        return -labels.distance
    if reason == CHANGED:
        return -labels.zero_shot_score
    if reason in (DUPLICATE, TINY):
        return labels.score
    return labels.margin


def fair_share(rows_by_queue: Sequence[Sequence[int]], most: int) -> list[int]:
    """One of each queue in turn, none twice, until there are `most`."""

    def in_turn() -> Iterator[int]:
        seen = set()
        for turn in zip_longest(*rows_by_queue):
            for row in turn:
                if row is not None and row not in seen:
                    seen.add(row)
                    yield row

    return list(islice(in_turn(), most))


def sheet_rows(labels: LabelTable, class_count: int) -> tuple[dict[int, list[list[int]]], int]:
    """For each class its typical and atypical rows, and how many classes were left out."""
    counts = np.bincount(labels.label[labels.label != UNKNOWN], minlength=class_count)
    order = np.argsort(-counts, kind="stable")
    present = [int(place) for place in order if counts[place]]
    shown = present[:MOST_SHEETS]
    each = min(MOST_PER_SHEET, max(2, MOST_ON_SHEETS // (2 * max(1, len(shown)))))
    return {place: _ends(labels, place, each) for place in shown}, len(present) - len(shown)


def _ends(labels: LabelTable, place: int, each: int) -> list[list[int]]:
    """The surest rows of a class and the least sure, no row in both."""
    rows: Int[np.ndarray, " row"] = np.flatnonzero(labels.label == place)
    # Joint scores are often all but 1: beyond two digits the distance says more.
    order = rows[np.lexsort((labels.distance[rows], -labels.score[rows].round(2)))]
    typical = order[: min(each, (len(order) + 1) // 2)]
    atypical = order[len(typical) :][::-1][:each]
    return [typical.tolist(), atypical.tolist()]
