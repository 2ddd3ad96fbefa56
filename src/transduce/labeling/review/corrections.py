"""`reviewed.csv`: the answers of a review, saved one by one."""

from dataclasses import dataclass, field
from pathlib import Path

from transduce.labeling.files import read_labeled, write_corrections


@dataclass(slots=True)
class Corrections:
    """The answers so far, each written at once. Open them with `Corrections.open(path)`."""

    path: Path
    labels: dict[str, str]  # file name to label
    _before: list[tuple[str, str | None]] = field(default_factory=list)  # to undo

    @classmethod
    def open(cls, path: Path) -> "Corrections":
        """Return the answers in the file at `path`; none if it does not exist."""
        return cls(path, read_labeled(path) if path.exists() else {})

    @property
    def can_undo(self) -> bool:
        """Whether this session has an answer to take back."""
        return bool(self._before)

    def set(self, file_name: str, label: str | None) -> None:
        """Save the label of an image; None skips it, which `undo` can take back too."""
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
        write_corrections(self.path, self.labels)
