"""A review of a run: which image is asked next, the answers, and solving again with them."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from transduce.errors import InvalidAnswer
from transduce.labeling.pipeline import solve_again
from transduce.labeling.report.selection import summarize_probabilities
from transduce.labeling.report.thumbnails import RunImages
from transduce.labeling.review.changes import describe_changes
from transduce.labeling.review.corrections import Corrections
from transduce.labeling.review.lock import only_review
from transduce.labeling.review.queue import review_order
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import label_names

CANDIDATES = 9  # one for each digit key
MOST_ASKED = 10_000  # in one session; the least sure of a larger run
AHEAD = 4  # images that the page fetches early

Solve = Callable[[RunDirectory, Mapping[str, str]], RunDirectory]
State = dict[str, Any]


class ReviewSession:
    """All that the page can ask for. Its methods may be called from more than one thread."""

    def __init__(
        self,
        run: RunDirectory,
        *,
        everything: bool = False,
        solve: Solve = solve_again,
        locks: contextlib.ExitStack | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._locks = locks  # holds the run for us, and those made by solving again
        self._everything = everything
        self._solve = solve
        self._open(run)

    def _open(self, run: RunDirectory) -> None:
        self.run = run
        self.corrections = Corrections.open(run.folder)
        self._names = label_names(run.classes)
        self._ask(review_order(run.labels, everything=self._everything))
        self._images = RunImages(run)
        self._passed: set[int] = set()  # skipped in this session
        self._again: int | None = None  # a row that undo brought back

    def _ask(self, order: list[int]) -> None:
        self._order = order[:MOST_ASKED]
        self._candidates, _ = summarize_probabilities(self.run, self._order, CANDIDATES)

    def jpeg(self, row: int, side: int) -> bytes:
        """Return the image of a row; raises `Unreadable`, or `InvalidAnswer` if there is no row."""
        self._check_row(row)
        return self._images.jpeg(row, side, quality=85)

    def state(self) -> State:
        """Return the image to ask about and the counts, as the page shows them."""
        with self._lock:
            return self._state()

    def answer(self, row: int, label: str | None) -> State:
        """Save the label of a row, `unknown`, or None to skip it; returns the next state."""
        with self._lock:
            self._check_row(row)
            if label is not None and label not in self._names:
                raise InvalidAnswer(f"Expected a class of the run or unknown, found {label!r}.")
            self.corrections.set(self.run.labels.file_name[row], label)
            if label is None:
                self._passed.add(row)
            self._again = None
            return self._state()

    def undo(self) -> State:
        """Take the last answer back and ask for it again; returns the next state."""
        with self._lock:
            names = self.corrections.undo()
            if names:
                self._again = self.run.labels.file_name.index(names[0])
                self._passed.discard(self._again)
            return self._state()

    def ask_everything(self) -> State:
        """Ask about all images, the closest calls first; returns the next state."""
        with self._lock:
            self._everything = True
            self._ask(review_order(self.run.labels, everything=True))
            return self._state()

    def solve(self) -> State:
        """Solve again with the corrections as shots and open the new run; returns its state."""
        with self._lock:
            if not self.corrections.labels:
                raise InvalidAnswer("Expected corrections to solve with, found none; answer first.")
            before = self.run
            after = self._solve(before, dict(self.corrections.labels))
            if self._locks is not None:
                self._locks.enter_context(only_review(after.folder))
            self._open(after)
            return {**self._state(), "solved": describe_changes(before, after)}

    def _state(self) -> State:
        left = self._left()
        names = self.run.labels.file_name
        answered = sum(names[row] in self.corrections.labels for row in self._order)
        return {
            "run": self.run.folder.name,
            "item": self._item(left[0]) if left else None,
            "ahead": left[1 : 1 + AHEAD],
            "left": len(left),
            "total": len(self._order),
            "answered": answered,
            "skipped": len(self._passed),
            "everything": self._everything,
            "corrections": len(self.corrections.labels),
            "can_undo": self.corrections.can_undo,
        }

    def _left(self) -> list[int]:
        names, answers = self.run.labels.file_name, self.corrections.labels
        left = [row for row in self._order if names[row] not in answers and row not in self._passed]
        if self._again is None:
            return left
        return [self._again, *(row for row in left if row != self._again)]

    def _item(self, row: int) -> State:
        labels = self.run.labels
        return {
            "row": row,
            "file_name": labels.file_name[row],
            "label": self._names[labels.label[row]],
            "score": round(float(labels.score[row]), 4),
            "zero_shot_label": self._names[labels.zero_shot_label[row]],
            "zero_shot_score": round(float(labels.zero_shot_score[row]), 4),
            "reasons": list(labels.reasons(row)),
            "candidates": [
                {"label": self._names[k], "share": round(share, 4)}
                for k, share in self._candidates.get(row, ())
            ],
        }

    def _check_row(self, row: int) -> None:
        if not 0 <= row < len(self.run.labels):
            raise InvalidAnswer(
                f"Expected an image from 0 to {len(self.run.labels) - 1}, found {row}."
            )
