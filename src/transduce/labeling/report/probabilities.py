"""What the pages show of the class probabilities, read block by block so that memory stays flat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32

from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN

MOST_CLASSES = 2000  # beyond, the table of pairs would not fit; the section is left out

Candidates = tuple[tuple[int, float], ...]  # class indices with their probability, likeliest first


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
    """Return the likeliest classes of each of `rows`, and which classes share probability."""
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
            for k in np.unique(given[given != UNKNOWN]):
                sums[k] += block[given == k].sum(0, dtype=np.float64)
    if not keep_pairs:
        return likeliest_of, None
    totals = np.bincount(labels[labels != UNKNOWN], minlength=n_classes)
    return likeliest_of, ClassPairs(sums / np.maximum(totals, 1)[:, None])


def likeliest(probabilities: Float32[np.ndarray, " class"], most: int) -> Candidates:
    """Return the `most` likeliest classes with their probabilities, the likeliest first."""
    order = np.argsort(-probabilities, kind="stable")[:most]
    return tuple((int(k), float(probabilities[k])) for k in order)
