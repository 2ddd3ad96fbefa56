"""The order in which a review asks about the images of a run."""

import numpy as np

from transduce.labeling.table import LabelTable


def review_order(labels: LabelTable, *, everything: bool = False) -> list[int]:
    """Return the rows that need a look, those with most reasons first, then the closest calls.

    With `everything`, or when nothing needs a look, all rows that were not labeled by hand.
    """
    wanted = np.flatnonzero(labels.needs_review & ~labels.corrected)
    if everything or not len(wanted):
        wanted = np.flatnonzero(~labels.corrected)
    rows: list[int] = wanted.tolist()
    return sorted(rows, key=lambda row: (-len(labels.reasons(row)), float(labels.margin[row])))
