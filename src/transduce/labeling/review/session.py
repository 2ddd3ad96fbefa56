"""A review of a run: which image is asked next, the answers, and solving again with them."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transduce.errors import InvalidAnswer
from transduce.labeling.pipeline import solve_again
from transduce.labeling.report.thumbnails import RunImages
from transduce.labeling.review.asking import Asking
from transduce.labeling.review.candidates import Candidates, GivenSets
from transduce.labeling.review.changes import carry_answers, describe_changes
from transduce.labeling.review.commands import (
    command_to_label,
    new_classes,
    next_command,
    no_images,
    write_new_classes,
)
from transduce.labeling.review.corrections import Corrections
from transduce.labeling.review.examples import typical_rows
from transduce.labeling.review.groups import CELLS, Grids
from transduce.labeling.review.lock import only_review
from transduce.labeling.review.queue import review_order, rows_named
from transduce.labeling.review.similar import Similarity
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import label_names
from transduce.labeling.trust.audit import Audit

CANDIDATES = 9  # one for each digit key
AHEAD = 4  # images that the page fetches early
EXAMPLES = 3  # images beside the name of a class
MOST_LISTED = 300  # answers in the list

Solve = Callable[[RunDirectory, Mapping[str, str]], RunDirectory]
State = dict[str, Any]


class ReviewSession:
    """All that the page can ask for. Its methods may be called from more than one thread.

    Parameters
    ----------
    run : RunDirectory
        The run to review.
    everything : bool
        Ask about all images, not only those to check.
    only : sequence of int, optional
        Ask about these rows, in this order.
    audit : Audit, optional
        Ask about its images and nothing else, and keep the answers apart.
    images : Path, optional
        Where the images are, for a run that has only their features.
    solve : callable
        Solves a run again with corrections.
    locks : ExitStack, optional
        Holds the run for us, and those made by solving again.
    """

    def __init__(
        self,
        run: RunDirectory,
        *,
        everything: bool = False,
        only: Sequence[int] | None = None,
        audit: Audit | None = None,
        images: Path | None = None,
        solve: Solve = solve_again,
        locks: contextlib.ExitStack | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._audit = audit
        self._everything, self._only = everything, only
        self._folder = images
        self._solve = solve
        self._locks = locks
        self._earlier: list[RunDirectory] = []  # those that were solved again
        self._solved: State | None = None
        self._open(run)

    def _open(self, run: RunDirectory) -> None:
        self.run = run
        self.corrections = Corrections.open(
            run.folder, "review" if self._audit is None else "audit"
        )
        self._names = label_names(run.classes)
        self._known = frozenset(self._names)
        self._row_of = {name: row for row, name in enumerate(run.labels.file_name)}
        self._images = RunImages(run, self._folder)
        self._candidates = Candidates(run, CANDIDATES)
        self._sets = GivenSets(run)
        self._similar = Similarity(run, self._row_of)
        self._examples = typical_rows(run.labels, EXAMPLES + 1)
        self._grids = Grids(run, self._similar)
        self._marked: set[int] = set()  # as wrong, in a grid
        self._ask()

    def _ask(self) -> None:
        if self._audit is not None:  # an answer of another audit is none to this one
            given = {self._row_of[name] for name in self._audit.answers}
            self._asking = Asking(self._audit.rows.tolist(), given)
            return
        if self._only is not None:
            order = list(self._only)
        else:
            order = review_order(self.run.labels, everything=self._everything)
        self._asking = Asking(order, self._answered_rows())

    def _answered_rows(self) -> set[int]:
        return {self._row_of[name] for name in self.corrections.labels if name in self._row_of}

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of the run, for the box where they are typed."""
        return self.run.classes.labels

    def jpeg(self, row: int, side: int) -> bytes:
        """Return the image of a row; raises `Unreadable`, or `InvalidAnswer` if there is no row."""
        self._check_rows([row])
        return self._images.jpeg(row, side, quality=85)

    def state(self) -> State:
        """Return the image to ask about and the counts, as the page shows them."""
        with self._lock:
            return self._state()

    def progress(self) -> tuple[int, int]:
        """Return how many images are answered, and of how many."""
        with self._lock:
            return self._asking.total - self._asking.left, self._asking.total

    def answer(self, row: int, label: str | None, *, same: bool = False) -> State:
        """Save the label of a row, `unknown`, or None to skip it; returns the next state.

        With `same`, images that look the same get the label too; never in an audit.
        """
        with self._lock:
            self._check_rows([row])
            self._check_audit(row)
            rows = [row]
            if same and label is not None and self._audit is None:
                rows += self._same(row)
            self._save(rows, [label] * len(rows))
            return self._state()

    def answer_grid(self, right: Sequence[int], wrong: Sequence[int]) -> State:
        """Save that the labels of the rows `right` are right, and ask about `wrong` next."""
        with self._lock:
            self._review_only()
            self._check_rows([*right, *wrong])
            self._save(right, [self._current(row) for row in right])
            self._asking.first(wrong)
            self._marked |= set(wrong)
            return self._state()

    def answer_all(self, rows: Sequence[int], label: str, new_class: str = "") -> State:
        """Save one label for all of the rows; returns the next state.

        `new_class` is a class that the run does not have: it is remembered beside the label,
        `unknown`, for the next run.
        """
        with self._lock:
            self._review_only()
            self._check_rows(rows)
            if new_class in self._known:
                label, new_class = new_class, ""
            self._save(rows, [label] * len(rows), new_class.strip())
            return self._state()

    def undo(self) -> State:
        """Take the last answer back and ask for it again; returns the next state."""
        with self._lock:
            rows = [self._row_of[name] for name in self.corrections.undo()]
            kept = self._answered_rows()
            self._asking.back([row for row in rows if row not in kept])
            if len(rows) > 1:  # a grid, perhaps: what was marked in it is not wrong any more
                self._asking.not_first(self._marked)
                self._marked.clear()
            self._asking.first(rows[:1])
            return self._state()

    def ask_again(self, row: int) -> State:
        """Ask about a row next, answered or not; returns the next state."""
        with self._lock:
            self._check_rows([row])
            self._check_audit(row)
            self._asking.first([row])
            return self._state()

    def ask_everything(self) -> State:
        """Ask about all images, the most doubtful first; returns the next state."""
        with self._lock:
            self._review_only()
            self._everything, self._only = True, None
            self._ask()
            return self._state()

    def ask_only(self, names: str) -> State:
        """Ask about the images of a list, one name a line; returns the next state."""
        with self._lock:
            self._review_only()
            self._only = rows_named(names, self.run.labels.file_name)
            self._ask()
            return self._state()

    def groups(self) -> State:
        """Return the groups that can be looked at together, without those that are done."""
        with self._lock:
            self._review_only()
            return {"groups": self._grids.described(self._answered_rows())}

    def grid(self, group: str) -> State:
        """Return the next images of a group; those marked as wrong are asked one by one."""
        with self._lock:
            self._review_only()
            done = self._answered_rows() | (self._marked & set(self._asking.firsts))
            return self._grids.grid(group, self.corrections.labels, done)

    def search(self, text: str) -> State:
        """Return a grid of the images that the words describe best."""
        self._review_only()
        if not text.strip():
            raise InvalidAnswer("Expected a few words to look for, found none.")
        rows = self._similar.described_by(text.strip(), CELLS)
        with self._lock:
            return self._grids.found(text.strip(), rows, self.corrections.labels)

    def search_like(self, row: int) -> State:
        """Return a grid of the images that look most like a row."""
        self._review_only()
        self._check_rows([row])
        rows = self._similar.like(row, CELLS)
        with self._lock:
            title = f"more like {self.run.labels.file_name[row]}"
            return self._grids.found(title, rows, self.corrections.labels)

    def answers(self) -> State:
        """Return the answers so far, the last first."""
        with self._lock:
            given = self.corrections.labels
            last = list(given.items())[: -MOST_LISTED - 1 : -1]
            entries = [
                {"row": row, "file_name": name, "label": label, "was": self._label(row)}
                for name, label in last
                if (row := self._row_of.get(name)) is not None
            ]
            return {"answers": entries, "all": len(given)}

    def solve(self) -> State:
        """Solve again with the corrections as shots and open the new run; returns its state."""
        with self._lock:
            self._review_only()
            if not self.corrections.labels:
                raise InvalidAnswer("Expected corrections to solve with, found none; answer first.")
            before = self.run
            after = self._solve(before, dict(self.corrections.labels))
            if self._locks is not None:
                self._locks.enter_context(only_review(after.folder))
            audited = carry_answers(before, after, "audit")
            carry_answers(before, after, "review")  # it has them, but not which classes they missed
            self._only = None
            self._open(after)
            self._earlier.append(before)
            self._solved = {**describe_changes(before, after), "audited": audited}
            return {**self._state(), "solved": self._solved}

    def undo_solve(self) -> State:
        """Go back to the run before it was solved again; answers given since come along."""
        with self._lock:
            if not self._earlier:
                raise InvalidAnswer("Expected a run that was solved again here, found none.")
            before, after = self._earlier[-1], self.run
            carry_answers(after, before, "review")
            self._earlier.pop()
            self._solved = None
            self._open(before)
            self.corrections.make_csv()
            return {**self._state(), "undone": str(after.folder)}

    def _save(self, rows: Sequence[int], labels: Sequence[str | None], new_class: str = "") -> None:
        for label in labels:
            if label is not None and label not in self._known:
                raise InvalidAnswer(f"Expected a class of the run or unknown, found {label!r}.")
        names = [self.run.labels.file_name[row] for row in rows]
        facts = {"new_class": new_class} if new_class else None
        self.corrections.set_all(dict(zip(names, labels, strict=True)), facts)
        if new_class:
            self.corrections.try_to(lambda: write_new_classes(self.run, self.corrections.journal))
        skipped = [row for row, label in zip(rows, labels, strict=True) if label is None]
        self._asking.done([row for row in rows if row not in skipped])
        self._asking.skip(skipped, later=self._audit is not None)

    def _state(self) -> State:
        asking, journal = self._asking, self.corrections.journal
        row = asking.next
        return {
            "run": self.run.folder.name,
            "mode": self._mode(),
            "item": None if row is None else self._item(row),
            "ahead": asking.ahead(AHEAD),
            "left": asking.left,
            "total": asking.total,
            "skipped": asking.skipped,
            "corrections": len(self.corrections.labels),
            "file": journal.path.name,
            "can_undo": self.corrections.can_undo,
            "can_undo_solve": bool(self._earlier),
            "expected": self._expected(),
            "trouble": self.corrections.trouble,
            "new_classes": new_classes(journal),
            "label_command": command_to_label(self.run, journal),
            "next": next_command(self.run, audit=self._audit is not None),
            "no_images": "" if self._folder else no_images(self.run),
        }

    def _mode(self) -> str:
        if self._audit is not None:
            return "audit"
        if self._only is not None:
            return "only"
        return "everything" if self._everything else "doubt"

    def _expected(self) -> dict[str, int]:
        """Return how many labels are wrong by the doubts: of those to ask, and of the others."""
        left = self._asking.rows()
        done = np.zeros(len(self.run.labels), bool)
        done[list(self._answered_rows())] = True
        doubt = np.where(done | self.run.labels.corrected, 0.0, self.run.labels.doubt)
        queue = float(doubt[left].sum())
        return {"queue": round(queue), "rest": round(float(doubt.sum()) - queue)}

    def _item(self, row: int) -> State:
        labels = self.run.labels
        name, label = labels.file_name[row], self._label(row)
        ranked = self._candidates.of(row)
        ranked.sort(key=lambda entry: self._names[entry[0]] != label)  # what is claimed comes first
        return {
            "row": row,
            "file_name": name,
            "label": label,
            "said": self.corrections.labels.get(name),
            "score": round(float(labels.score[row]), 4),
            "doubt": round(float(labels.doubt[row]), 4),
            "zero_shot_label": self._names[labels.zero_shot_label[row]],
            "reasons": list(labels.reasons(row)),
            "candidates": [
                {"label": self._names[k], "share": round(share, 4), "examples": self._shown(k, row)}
                for k, share in ranked
            ],
            "set": self._sets.of(name),
            "coverage": self._sets.coverage,
            "same": [] if self._audit is not None else self._same(row),
        }

    def _shown(self, k: int, row: int) -> list[int]:
        return [other for other in self._examples.get(k, ()) if other != row][:EXAMPLES]

    def _same(self, row: int) -> list[int]:
        """Return the rows that look the same and have no answer yet."""
        names, given = self.run.labels.file_name, self.corrections.labels
        return [other for other in self._similar.same(row) if names[other] not in given]

    def _label(self, row: int) -> str:
        return self._names[self.run.labels.label[row]]

    def _current(self, row: int) -> str:
        """Return the label that the page shows for a row: the answer, or else the run's."""
        return self.corrections.labels.get(self.run.labels.file_name[row], self._label(row))

    def _review_only(self) -> None:
        if self._audit is not None:
            raise InvalidAnswer(
                "Expected an answer to the audit, found another wish; end it, and open the run "
                "with transduce review alone."
            )

    def _check_audit(self, row: int) -> None:
        if self._audit is not None and row not in self._audit.rows:
            raise InvalidAnswer("Expected an image of the audit, found another.")

    def _check_rows(self, rows: Sequence[int]) -> None:
        for row in rows:
            if not 0 <= row < len(self.run.labels):
                raise InvalidAnswer(
                    f"Expected an image from 0 to {len(self.run.labels) - 1}, found {row}."
                )
