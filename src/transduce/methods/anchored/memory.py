"""Images that `Anchored` remembers as they are, so that their labels may still change.

Sums cannot be divided again: what was counted to the wrong class stays there. So a bounded number
of images is kept as rows, and labeled once more with the images that come. Which ones are kept
depends on their embeddings alone: those with the smallest hash, a random sample of all that came,
and the same one in whatever order they came.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Int, UInt64

from transduce.methods.anchored.batch import ArrayRows, Rows, RowSource

REMEMBERED = 2048  # images
HASHED = 16  # features; images that are equal in these are equal
HASH_STEPS = np.float32(256)  # a feature is rounded to such parts of 1, as it may be more precise
SAME = 1e-5  # of a cosine below 1: two embeddings of one image, but for rounding
MULTIPLIERS = np.random.default_rng(0).integers(0, 1 << 63, HASHED, np.uint64) | np.uint64(1)
MIXED = np.uint64(0xFF51AFD7ED558CCD)
SHIFT = np.uint64(33)

Labels = Int[np.ndarray, " image"]


@final
@dataclass(frozen=True)
class Memory:
    """Remembered images with their labels."""

    images: Rows
    labels: Labels  # as they would be labeled now
    written: Labels  # as they were labeled when they came
    view: Rows | None = None

    @classmethod
    def none(cls, width: int) -> "Memory":
        """No images of `width` features."""
        return cls(np.zeros((0, width), np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def compared(self) -> Rows:
        """What images are compared by."""
        return self.images if self.view is None else self.view

    def rows(self) -> ArrayRows:
        """The images, to be labeled with others."""
        return ArrayRows(self.images, self.view)

    def take(self, chosen: Int[np.ndarray, " chosen"]) -> "Memory":
        """Some of the images."""
        view = None if self.view is None else self.view[chosen]
        return Memory(self.images[chosen], self.labels[chosen], self.written[chosen], view)

    def joined(self, other: "Memory") -> "Memory":
        """These images and others."""
        if not len(self) or not len(other):
            return self if len(self) else other
        view = None
        if self.view is not None and other.view is not None:
            view = np.concatenate([self.view, other.view])
        return Memory(
            np.concatenate([self.images, other.images]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.written, other.written]),
            view,
        )

    def find(self, compared: Rows) -> Labels:
        """Where images are that were compared by these rows; -1 for those not remembered."""
        found = np.full(len(compared), -1, np.int64)
        if len(self):
            for row, cosines in enumerate(compared @ self.compared.T):
                cosines[found[:row][found[:row] >= 0]] = 0.0  # a copy is another image
                best = int(cosines.argmax())
                found[row] = best if cosines[best] > 1.0 - SAME else -1
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields by name, to be kept in a file."""
        found = {"images": self.images, "labels": self.labels, "written": self.written}
        return found if self.view is None else found | {"view": self.view}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Memory":
        """The images that `arrays` returned."""
        return cls(arrays["images"], arrays["labels"], arrays["written"], arrays.get("view"))


@final
@dataclass(frozen=True)
class JoinedRows:
    """The rows of a batch, and then those of a memory."""

    new: RowSource
    remembered: ArrayRows

    def __len__(self) -> int:
        return len(self.new) + len(self.remembered)

    def images(self, rows: slice) -> Rows:
        """Embeddings by the encoder of the names."""
        return np.concatenate([source.images(part) for source, part in self._parts(rows)])

    def view(self, rows: slice) -> Rows | None:
        """Embeddings by the encoder that images are compared by; None if it is the same."""
        if self.remembered.unit_view is None:
            return None
        seen = [source.view(part) for source, part in self._parts(rows)]
        return np.concatenate([part for part in seen if part is not None])

    def compared(self, rows: Labels) -> Rows:
        """The view, or without one the embeddings, of any rows in the order given."""
        old = rows >= len(self.new)
        every = self.remembered.compared(np.where(old, rows - len(self.new), 0))
        if not old.all():
            every[~old] = self.new.compared(rows[~old])
        return every

    def _parts(self, rows: slice) -> list[tuple[RowSource, slice]]:
        """The sources that have these rows, and where."""
        start, stop, _ = rows.indices(len(self))
        n_new = len(self.new)
        parts: list[tuple[RowSource, slice]] = []
        if start < n_new:
            parts.append((self.new, slice(start, min(stop, n_new))))
        if stop > n_new or not parts:
            parts.append((self.remembered, slice(max(start - n_new, 0), max(stop - n_new, 0))))
        return parts


def priorities(images: Rows) -> UInt64[np.ndarray, " row"]:
    """A hash of each row; the images with the smallest are remembered."""
    steps = np.floor(images[:, :HASHED] * HASH_STEPS)
    bits = steps.astype(np.int64).astype(np.uint64)
    mixed = (bits * MULTIPLIERS[: bits.shape[1]]).sum(1, dtype=np.uint64)
    for _ in range(2):
        mixed ^= mixed >> SHIFT
        mixed *= MIXED
    mixed ^= mixed >> SHIFT
    return mixed


def first_by_priority(
    hashes: UInt64[np.ndarray, " row"], count: int = REMEMBERED
) -> Int[np.ndarray, " chosen"]:
    """The rows with the smallest hashes, in increasing order of their numbers."""
    if len(hashes) <= count:
        return np.arange(len(hashes))
    return np.sort(np.argsort(hashes, kind="stable")[:count])
