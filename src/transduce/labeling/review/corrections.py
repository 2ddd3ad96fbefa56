"""The answers of one review session, saved as they are given and taken back in the same order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from transduce.labeling.journal import Journal, line_of


@dataclass(slots=True)
class Corrections:
    """The answers so far, each on the disk at once. Open them with `Corrections.open(folder)`."""

    journal: Journal
    kind: Literal["review", "audit"] = "review"
    trouble: str = ""  # why reviewed.csv is behind the journal; "" when it is not
    _steps: list[dict[str, str | None]] = field(default_factory=list)  # what was before, to undo

    @classmethod
    def open(cls, folder: Path, kind: Literal["review", "audit"] = "review") -> "Corrections":
        """Return the answers about the run in `folder`; none if nobody answered."""
        return cls(Journal.open(folder), kind)

    @property
    def labels(self) -> dict[str, str]:
        """The label of each file name, the last answered last."""
        return self.journal.audit if self.kind == "audit" else self.journal.review

    @property
    def steps(self) -> int:
        """How many times this session can take something back."""
        return len(self._steps)

    @property
    def can_undo(self) -> bool:
        """Whether this session has an answer to take back."""
        return bool(self._steps)

    def set(self, file_name: str, label: str | None) -> None:
        """Save the label of an image; None skips it, which `undo` can take back too."""
        self.set_all({file_name: label})

    def set_all(
        self, labels: Mapping[str, str | None], facts: Mapping[str, Any] | None = None
    ) -> None:
        """Save the labels of several images in one step, all or none; `undo` takes all back.

        Raises `NotSaved`; nothing has changed then.
        """
        given = {name: label for name, label in labels.items() if label is not None}
        before = {name: self.labels.get(name) for name in labels}
        if given:
            self.journal.append_lines(
                [line_of(self.kind, name, label, facts) for name, label in given.items()]
            )
            self.make_csv()
        self._steps.append(before)

    def undo(self) -> list[str]:
        """Take the last answer of this session back; returns its file names, the first first."""
        if not self._steps:
            return []
        before = self._steps[-1]
        changed = {name: old for name, old in before.items() if self.labels.get(name) != old}
        if changed:
            facts = {"of": self.kind}
            self.journal.append_lines(
                [line_of("undo", name, old, facts) for name, old in changed.items()]
            )
            self.make_csv()
        self._steps.pop()
        return list(before)

    def make_csv(self) -> None:
        """Bring reviewed.csv up to date."""
        if self.kind == "review":
            self.try_to(self.journal.write_reviewed)

    def try_to(self, write: Callable[[], None]) -> None:
        """Write a file made from the answers; an error of it is kept in `trouble`, not raised."""
        try:
            write()
            self.trouble = ""
        except OSError as error:
            self.trouble = (
                f"Your answers are saved in {self.journal.path}, but a file made from them could "
                f"not be written: {error.strerror or error}. The next answer tries again."
            )
