"""Typical images of each class, to show beside its name."""

import numpy as np

from transduce.labeling.settings import UNKNOWN
from transduce.labeling.table import LabelTable


def typical_rows(labels: LabelTable, each: int) -> dict[int, list[int]]:
    """Return for each class index the rows that are most likely right, at most `each`.

    Images that a person labeled come first; of those alike, the nearest to the class's words.
    """
    doubt = np.where(labels.corrected, -1.0, labels.doubt.round(2))
    order = np.lexsort((labels.distance, doubt, labels.label))
    order = order[labels.label[order] != UNKNOWN]
    classes = labels.label[order]
    starts = np.flatnonzero(np.diff(classes, prepend=-2))
    return {
        int(classes[start]): [
            int(row) for row in order[start : start + each] if labels.label[row] == classes[start]
        ]
        for start in starts
    }
