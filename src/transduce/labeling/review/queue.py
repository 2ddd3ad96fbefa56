"""The order in which a review asks about the images of a run."""

from collections.abc import Sequence

import numpy as np

from transduce.errors import InvalidAnswer, some_of
from transduce.labeling.table import LabelTable


def review_order(labels: LabelTable, *, everything: bool = False) -> list[int]:
    """Return the rows to check, those that are most likely wrong first.

    With `everything`, or when nothing is to be checked, all rows that were not labeled by hand.
    """
    wanted = np.flatnonzero(labels.needs_review & ~labels.corrected)
    if everything or not len(wanted):
        wanted = np.flatnonzero(~labels.corrected)
    order = np.lexsort((labels.margin[wanted], -labels.doubt[wanted]))
    rows: list[int] = wanted[order].tolist()
    return rows


def rows_named(text: str, file_names: Sequence[str]) -> list[int]:
    """Return the rows of a list of file names, one a line, in the order of the list.

    Raises
    ------
    InvalidAnswer
        Where a name is not in the run, or there is none.
    """
    row_of = {name: row for row, name in enumerate(file_names)}
    names = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    wanted = dict.fromkeys(name if name in row_of else name.strip() for name in names)
    missing = [name for name in wanted if name not in row_of]
    if missing:
        raise InvalidAnswer(
            f"Expected names of images of the run, one a line, found {len(missing):,} others: "
            f"{some_of([repr(name) for name in missing], 3)}."
        )
    if not wanted:
        raise InvalidAnswer("Expected names of images of the run, one a line, found none.")
    return [row_of[name] for name in wanted]
