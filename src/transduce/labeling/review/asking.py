"""The images that a review still has to ask about, each step in constant time."""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from jaxtyping import Int


class Asking:
    """Rows in the order in which they are asked; some may be asked first."""

    def __init__(self, order: Sequence[int], answered: set[int]) -> None:
        self._all = {row: rank for rank, row in enumerate(order)}
        self._left = dict.fromkeys(row for row in order if row not in answered)
        self._first: list[int] = []
        self._skipped: set[int] = set()

    @property
    def next(self) -> int | None:
        """The row to ask about; None when there is no more."""
        return next(iter(self.firsts or self._left), None)

    @property
    def firsts(self) -> tuple[int, ...]:
        """The rows that are asked before the others, answered or not."""
        return tuple(self._first)

    @property
    def left(self) -> int:
        """How many rows will be asked."""
        return len(self._left) + sum(row not in self._left for row in self._first)

    @property
    def total(self) -> int:
        """How many rows were to be asked from the start, plus those put first since."""
        return len(self._all) + sum(row not in self._all for row in self._first)

    @property
    def skipped(self) -> int:
        """How many were put off."""
        return len(self._skipped)

    def ahead(self, most: int) -> list[int]:
        """Return the rows that come after the next one."""
        first = self.firsts
        others = (row for row in self._left if row not in first)
        return [*first[1 : most + 1], *islice(others, most + 1)][: most + (not first)][not first :]

    def rows(self) -> Int[np.ndarray, " row"]:
        """Return all rows that will be asked, in no order."""
        others = [row for row in dict.fromkeys(self._first) if row not in self._left]
        left = np.fromiter(self._left, np.int64, len(self._left))
        return np.concatenate([left, np.array(others, np.int64)])

    def first(self, rows: Iterable[int]) -> None:
        """Ask about these rows before all others, the first of them first."""
        rows = list(rows)
        self._first = [*rows, *(row for row in self._first if row not in rows)]
        self.back(self._skipped.intersection(rows))
        self._skipped -= set(rows)

    def not_first(self, rows: Iterable[int]) -> None:
        """Ask about these rows at their rank in the queue, if they have one."""
        gone = set(rows)
        self._first = [row for row in self._first if row not in gone]

    def back(self, rows: Iterable[int]) -> None:
        """Put rows that were answered back among those to ask, each at its rank."""
        again = {row for row in rows if row in self._all} - self._left.keys()
        if not again:
            return
        self._left = dict.fromkeys(sorted(self._left.keys() | again, key=self._all.__getitem__))

    def done(self, rows: Iterable[int]) -> None:
        """Take rows off that were answered."""
        for row in rows:
            self._left.pop(row, None)
            self._skipped.discard(row)
            if row in self._first:
                self._first.remove(row)

    def skip(self, rows: Iterable[int], *, later: bool) -> None:
        """Take rows off without an answer; with `later` they are asked after all others."""
        rows = list(rows)
        self.done(rows)
        self._skipped |= set(rows)
        if later:
            self._left |= dict.fromkeys(rows)
