"""`reviewed.csv`: what a person said of each image, saved at every answer."""

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

from transduce.atomic import replace_text
from transduce.labeling.files import read_corrections

COLUMNS = ("file_name", "label")


@dataclass(slots=True)
class Corrections:
    """The answers so far. Open them with `Corrections.open(path)`; each change is on the disk."""

    path: Path
    labels: dict[str, str]  # file name to label
    _before: list[tuple[str, str | None]] = field(default_factory=list)  # to undo

    @classmethod
    def open(cls, path: Path) -> "Corrections":
        return cls(path, read_corrections(path))

    @property
    def can_undo(self) -> bool:
        return bool(self._before)

    def set(self, file_name: str, label: str | None) -> None:
        """Answer for an image; None is no answer (skipped), which undo can take back too."""
        self._before.append((file_name, self.labels.get(file_name)))
        if label is not None:
            self._put(file_name, label)

    def undo(self) -> str | None:
        """Take the last answer of this session back; returns its file name, or None."""
        if not self._before:
            return None
        file_name, earlier = self._before.pop()
        if self.labels.get(file_name) != earlier:
            self._put(file_name, earlier)
        return file_name

    def _put(self, file_name: str, label: str | None) -> None:
        self.labels.pop(file_name, None)
        if label is not None:
            self.labels[file_name] = label
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(self.labels.items())
        replace_text(self.path, text.getvalue())
