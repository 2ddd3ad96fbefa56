"""`answers.jsonl`: every answer given about a run, appended line by line and never rewritten.

A line is a JSON object with the time, a kind, and for an answer the file name and the label:

- `review`: the label of an image, as a person gave it;
- `audit`: the same for an image of a random sample, kept apart so that nothing is solved with it;
- `undo`: takes an answer of the kind `of` back; `label` is the one before, or null for none;
- `draw`: which images an audit will show, written before any of them is seen;
- `import`: the review answers of a run that had only `reviewed.csv`, in one line.

A line is on the disk before it counts, so what is said to be saved is saved. `reviewed.csv` is made
from the review answers, for people and for `--support-from`.
"""

import contextlib
import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from transduce.errors import InvalidFile, NotSaved
from transduce.labeling.files import read_labeled, write_corrections
from transduce.machine.atomic import hold

ANSWERS = "answers.jsonl"
REVIEWED = "reviewed.csv"

Kind = Literal["review", "audit", "draw", "undo", "import"]
Line = dict[str, Any]


def line_of(
    kind: Kind,
    file_name: str | None = None,
    label: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Line:
    """Return a line of the journal, with the time of now; `facts` are further fields of it."""
    line: Line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "kind": kind}
    if file_name is not None:
        line |= {"file_name": file_name, "label": label}
    return {**line, **(facts or {})}


@dataclass(slots=True)
class Journal:
    """The answers about a run. Open them with `Journal.open(folder)`.

    Several programs may append to one journal: each line is written under a lock, after the lines
    that others wrote meanwhile are read.

    Parameters
    ----------
    folder : Path
        The run directory.
    review : dict of str to str
        The label (or `unknown`) of each file name answered in a review.
    audit : dict of str to str
        The same for the images of audits.
    new_classes : dict of str to str
        The class that the run does not have, of file names answered `unknown` with one.
    draws : list of dict
        The `draw` lines, in their order.
    lines : list of dict
        All lines, in their order; undone answers are among them.
    """

    folder: Path
    review: dict[str, str] = field(default_factory=dict)
    audit: dict[str, str] = field(default_factory=dict)
    new_classes: dict[str, str] = field(default_factory=dict)
    draws: list[Line] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    _size: int = 0  # bytes of the file that are in the fields above

    @classmethod
    def open(cls, folder: str | Path) -> "Journal":
        """Return the answers in a run directory; none where nobody answered.

        Raises
        ------
        InvalidFile
            Where a line is no answer. Only the last may be torn: it was never acknowledged.
        """
        journal = cls(Path(folder))
        journal.refresh()
        return journal

    @property
    def path(self) -> Path:
        """Where the answers are."""
        return self.folder / ANSWERS

    def refresh(self) -> None:
        """Read what others wrote since; a file that shrank or went away is read anew."""
        try:
            with self.path.open("rb") as file:
                self._catch_up(file)
        except FileNotFoundError:
            self._begin()
        except OSError as error:
            raise InvalidFile(
                f"Expected to read {self.path}, found {error.strerror}; check its permissions."
            ) from error

    def append(
        self,
        kind: Kind,
        file_name: str | None = None,
        label: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Save one line; see `append_lines`."""
        self.append_lines([line_of(kind, file_name, label, facts)])

    def append_lines(self, lines: Sequence[Line]) -> None:
        """Save lines, all or none of them; on return they are on the disk.

        Raises
        ------
        NotSaved
            Where the system refuses (a full disk, a folder that is gone); the file and this
            journal are as they were.
        """
        try:
            with self._writing() as file:
                self._catch_up(file)
                if not self._size and self.review:  # of reviewed.csv: the file must stand alone
                    lines = [line_of("import", facts={"answers": dict(self.review)}), *lines]
                data = b"".join(map(_encoded, lines))
                _write(file, self._size, data)
        except OSError as error:
            raise NotSaved(
                f"Expected to save the answer in {self.path}, found {error.strerror}; nothing of "
                "it was saved. Make room or put the folder back, and answer again."
            ) from error
        for line in lines:
            self._apply(line)
        self._size += len(data)

    def write_reviewed(self) -> None:
        """Write `reviewed.csv` from the review answers, in one step."""
        write_corrections(self.folder / REVIEWED, self.review)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[BinaryIO]:
        # O_CREAT without O_TRUNC: the file may have been made since we looked.
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            hold(file)  # until it is closed, for the time of one line
            yield file  # unbuffered, so that no byte is written later

    def _forget(self) -> None:
        self._size = 0
        for held in (self.review, self.audit, self.new_classes, self.draws, self.lines):
            held.clear()

    def _begin(self) -> None:
        """Start with what reviewed.csv says, for as long as there is no whole line."""
        self._forget()
        if (self.folder / REVIEWED).exists():
            self.review.update(read_labeled(self.folder / REVIEWED))

    def _catch_up(self, file: BinaryIO) -> None:
        """Read the whole lines after the part that is known."""
        size = os.fstat(file.fileno()).st_size
        if size < self._size or not self._size:
            self._forget()
        file.seek(self._size)
        text = file.read(size - self._size)
        whole = text[: text.rfind(b"\n") + 1]  # what follows is torn, and was never acknowledged
        for piece in whole.split(b"\n")[:-1]:
            self._apply(self._parsed(piece))
        self._size += len(whole)
        if not self._size:
            self._begin()

    def _parsed(self, piece: bytes) -> Line:
        try:
            line = json.loads(piece)
            kind = line["kind"]
            answer = kind in ("review", "audit", "undo")
            if answer and not isinstance(line["file_name"], str):
                raise TypeError("a file name that is no text")
            if kind in ("review", "audit") and not isinstance(line["label"], str):
                raise TypeError("a label that is no text")
            if kind == "import":
                dict.items(line["answers"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidFile(
                f"Expected an answer in line {len(self.lines) + 1} of {self.path}, found "
                f"{type(error).__name__}: {error}; delete that line, or put the file back."
            ) from None
        return dict(line)

    def _apply(self, line: Line) -> None:
        self.lines.append(line)
        kind = line["kind"]
        if kind == "draw":
            self.draws.append(line)
        elif kind == "import":
            self.review.update(line["answers"])
        elif kind in ("review", "audit", "undo"):
            of = line.get("of", "review") if kind == "undo" else kind
            answers = self.audit if of == "audit" else self.review
            answers.pop(line["file_name"], None)  # so that the last answer is the last entry
            if line.get("label") is not None:
                answers[line["file_name"]] = line["label"]
            if of != "audit":
                self.new_classes.pop(line["file_name"], None)
                if line.get("new_class"):
                    self.new_classes[line["file_name"]] = str(line["new_class"])


def _encoded(line: Line) -> bytes:
    try:
        return (json.dumps(line, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a file name that is no UTF-8
        return (json.dumps(line) + "\n").encode()


def _write(file: BinaryIO, start: int, data: bytes) -> None:
    """Write the bytes from `start` on, all of them or none, and wait for the disk."""
    if not os.fstat(file.fileno()).st_nlink:
        raise FileNotFoundError(errno.ENOENT, "the file was deleted meanwhile")
    try:
        file.truncate(start)  # a torn line of somebody who was killed
        file.seek(start)
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(OSError):  # if not even that works, the next writer does it
            file.truncate(start)
        raise
