"""One person going through the images of a run: what is asked, what was said, what it changed."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from transduce.errors import InvalidAnswer
from transduce.labeling.again import solve_again
from transduce.labeling.report.page import write_report
from transduce.labeling.report.probabilities import Candidates, blocks, likeliest
from transduce.labeling.report.thumbnails import RunPictures
from transduce.labeling.review.changes import describe_changes
from transduce.labeling.review.corrections import Corrections
from transduce.labeling.review.queue import review_order
from transduce.labeling.run_directory import REVIEWED, RunDirectory
from transduce.labeling.table import UNKNOWN_LABEL

CANDIDATES = 9  # one for each digit key
MOST_ASKED = 10_000  # in one session; the least sure of a larger run
AHEAD = 4  # pictures that the page fetches early

Solve = Callable[[RunDirectory, Mapping[str, str]], RunDirectory]
State = dict[str, Any]


class ReviewSession:
    """All that the page can ask for. Its methods may be called from several threads."""

    def __init__(
        self, run: RunDirectory, *, everything: bool = False, solve: Solve = solve_again
    ) -> None:
        self._lock = threading.Lock()
        self._everything = everything
        self._solve = solve
        self._open(run)

    def _open(self, run: RunDirectory) -> None:
        self.run = run
        self.corrections = Corrections.open(run.folder / REVIEWED)
        self._names = (*run.classes.labels, UNKNOWN_LABEL)  # UNKNOWN is -1: the last
        self._ask(review_order(run.labels, everything=self._everything))
        self._pictures = RunPictures(run)
        self._passed: set[int] = set()  # skipped in this session
        self._again: int | None = None  # a row that undo brought back

    def _ask(self, order: list[int]) -> None:
        self._order = order[:MOST_ASKED]
        self._candidates = _candidates(self.run, self._order)

    def jpeg(self, row: int, side: int) -> bytes:
        """The picture of a row of the run; raises `Unreadable`, or `InvalidAnswer` for no row."""
        self._check_row(row)
        return self._pictures.jpeg(row, side, quality=85)

    def state(self) -> State:
        with self._lock:
            return self._state()

    def answer(self, row: int, label: str | None) -> State:
        """The label of a row, `unknown`, or None to skip it; returns what comes next."""
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
        with self._lock:
            name = self.corrections.undo()
            if name is not None:
                self._again = self.run.labels.file_name.index(name)
                self._passed.discard(self._again)
            return self._state()

    def ask_everything(self) -> State:
        """Go on with the images that nobody doubts, the closest calls first."""
        with self._lock:
            self._everything = True
            self._ask(review_order(self.run.labels, everything=True))
            return self._state()

    def solve(self) -> State:
        """Solve again with the corrections as shots; the review goes on in the new run."""
        with self._lock:
            if not self.corrections.labels:
                raise InvalidAnswer("Expected corrections to solve with, found none; answer first.")
            before = self.run
            after = self._solve(before, dict(self.corrections.labels))
            write_report(after)
            self._open(after)
            return {**self._state(), "solved": describe_changes(before, after)}

    def _state(self) -> State:
        left = self._left()
        answered = sum(self.run.labels.file_name[row] in self.corrections.labels
                       for row in self._order)  # fmt: skip
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
        names, said = self.run.labels.file_name, self.corrections.labels
        left = [row for row in self._order if names[row] not in said and row not in self._passed]
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
                {"label": self._names[place], "share": round(share, 4)}
                for place, share in self._candidates.get(row, ())
            ],
        }

    def _check_row(self, row: int) -> None:
        if not 0 <= row < len(self.run.labels):
            raise InvalidAnswer(
                f"Expected an image from 0 to {len(self.run.labels) - 1}, found {row}."
            )


def _candidates(run: RunDirectory, rows: list[int]) -> dict[int, Candidates]:
    """The likeliest classes of each row that will be asked about."""
    wanted = set(rows)
    found: dict[int, Candidates] = {}
    for start, block in blocks(run.folder):
        for place, probabilities in enumerate(block):
            if start + place in wanted:
                found[start + place] = likeliest(probabilities, CANDIDATES)
    return found
