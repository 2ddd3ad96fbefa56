"""The state of a large batch on disk after each step, so that a stopped run goes on from there."""

import hashlib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import transduce
from transduce.machine.atomic import replace_file

FINGERPRINT, WRITTEN_BY = "fingerprint", "written_by"
LAYOUT = 2  # of the arrays; another number where the same arrays mean something else
THIS_CODE = f"transduce {transduce.__version__}, layout {LAYOUT}"


@dataclass(frozen=True, slots=True)
class FileCheckpoint:
    """A file that holds the last state of the batch of a fingerprint; others are not read.

    `say` is called with the reason if there is a state that this code cannot continue.
    """

    path: Path
    fingerprint: str
    say: Callable[[str], None] = lambda line: None

    def last(self) -> Mapping[str, np.ndarray] | None:
        """What was kept last; None if there is nothing of this batch."""
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                by = str(stored[WRITTEN_BY]) if WRITTEN_BY in stored else "an older version"
                same = str(stored[FINGERPRINT]) == self.fingerprint
                arrays = dict(stored) if same and by == THIS_CODE else {}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            why = "it is not whole"
        else:
            if arrays:
                return {name: arrays[name] for name in arrays.keys() - {FINGERPRINT, WRITTEN_BY}}
            why = "it is of other images, classes or settings"
            if by != THIS_CODE:
                why = f"it was written by {by}, and this is {THIS_CODE}"
        self.say(
            f"The state in {self.path} cannot be gone on with: {why}. Solving starts anew at its "
            "first step; nothing else is lost, what was embedded is used."
        )
        return None

    def keep(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep these arrays instead of what was kept before."""
        labels = {FINGERPRINT: np.array(self.fingerprint), WRITTEN_BY: np.array(THIS_CODE)}

        def write(temporary: Path) -> None:
            with temporary.open("wb") as file:
                np.savez(file, **labels, **arrays)  # type: ignore[arg-type]

        replace_file(self.path, write)


def fingerprint_of(words: str, *arrays: np.ndarray) -> str:
    """A digest of what a batch is made of."""
    digest = hashlib.sha256(words.encode())
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
