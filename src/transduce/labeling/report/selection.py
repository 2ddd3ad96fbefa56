"""Which images the page carries, their likeliest classes, and which classes are confused."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np
from jaxtyping import Float, Float32, Int

from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.table import CHANGED, DUPLICATE, FAR, REASONS, TINY, LabelTable

MOST_QUEUED = 200
MOST_ON_SHEETS = 240
MOST_PER_SHEET = 6
MOST_SHEETS = 50
MOST_CLASSES = 2000  # beyond, the table of pairs would not fit; the section is left out

Candidates = tuple[tuple[int, float], ...]  # class indices with their probability, likeliest first


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


@dataclass(frozen=True, slots=True)
class ClassPairs:
    """`shared[a, b]` is the mean probability of class b over the images labeled a."""

    shared: Float[np.ndarray, "class class"]

    def most_confusable(self, most: int, least_share: float) -> list[tuple[int, int, float]]:
        """Return the unordered pairs that share most, with the larger of their two shares."""
        both = np.maximum(self.shared, self.shared.T)
        first, second = np.triu_indices(len(both), 1)
        shares = both[first, second]
        order = np.argsort(-shares, kind="stable")[:most]
        return [
            (int(first[i]), int(second[i]), float(shares[i]))
            for i in order
            if shares[i] >= least_share
        ]


def summarize_probabilities(
    run: RunDirectory, rows: Iterable[int], candidates: int
) -> tuple[Mapping[int, Candidates], ClassPairs | None]:
    """Return the likeliest classes of each of `rows`, and which classes share probability.

    Probabilities are read block by block, so that memory stays flat.
    """
    from scipy.sparse import csr_array  # here, because not every page needs it

    labels, n_classes = run.labels.label, len(run.classes)
    wanted = np.unique(np.fromiter(rows, dtype=np.int64))
    likeliest_of: dict[int, Candidates] = {}
    keep_pairs = n_classes <= MOST_CLASSES
    sums = np.zeros((n_classes, n_classes)) if keep_pairs else np.zeros((0, 0))
    for start, block in run.probability_blocks():
        here = wanted[(wanted >= start) & (wanted < start + len(block))]
        likeliest_of |= {int(row): likeliest(block[row - start], candidates) for row in here}
        if keep_pairs:
            given = labels[start : start + len(block)]
            known = np.flatnonzero(given != UNKNOWN)
            ones = np.ones(len(known), np.float32)
            members = csr_array((ones, (given[known], known)), shape=(n_classes, len(block)))
            sums += members @ block
    if not keep_pairs:
        return likeliest_of, None
    totals = np.bincount(labels[labels != UNKNOWN], minlength=n_classes)
    return likeliest_of, ClassPairs(sums / np.maximum(totals, 1)[:, None])


def likeliest(probabilities: Float32[np.ndarray, " class"], most: int) -> Candidates:
    """Return the `most` likeliest classes with their probabilities, the likeliest first."""
    order = np.argsort(-probabilities, kind="stable")[:most]
    return tuple((int(k), float(probabilities[k])) for k in order)
