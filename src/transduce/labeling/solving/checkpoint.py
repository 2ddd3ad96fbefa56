"""The state of a large batch on disk after each step, so that a stopped run goes on from there."""

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transduce.machine.atomic import replace_file

FINGERPRINT = "fingerprint"


@dataclass(frozen=True, slots=True)
class FileCheckpoint:
    """A file that holds the last state of the batch of a fingerprint; others are not read."""

    path: Path
    fingerprint: str

    def last(self) -> Mapping[str, np.ndarray] | None:
        """What was kept last; None if there is nothing of this batch."""
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = dict(stored)
        except (OSError, ValueError, zipfile.BadZipFile):  # none, or not whole
            return None
        return arrays if str(arrays.pop(FINGERPRINT, "")) == self.fingerprint else None

    def keep(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep these arrays instead of what was kept before."""

        def write(temporary: Path) -> None:
            with temporary.open("wb") as file:
                np.savez(file, **{FINGERPRINT: np.array(self.fingerprint)}, **arrays)  # type: ignore[arg-type]

        replace_file(self.path, write)


def fingerprint_of(words: str, *arrays: np.ndarray) -> str:
    """A digest of what a batch is made of."""
    digest = hashlib.sha256(words.encode())
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
