"""The assignments of a batch of any size in little memory: sparse rows, a part for each chunk.

A million images with 64 classes each, as after the first step with images, are 400 MB: a class is
two bytes where there are fewer than 65,536, and no part is ever copied into a larger whole.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Int

from transduce.mixtures.within import Sparse


@dataclass(frozen=True)
class Entries:
    """Sparse rows (image, class) of a chunk; made by `of`."""

    shares: Float32[np.ndarray, " entry"]
    classes: Int[np.ndarray, " entry"]  # in the smallest type that holds all of them
    starts: Int[np.ndarray, " bound"]  # of each row; the last is the number of entries
    n_classes: int

    @classmethod
    def of(cls, z: Sparse) -> "Entries":
        """The rows of a sparse matrix, in smaller types."""
        small = np.uint16 if z.shape[1] <= 1 << 16 else np.int32
        return cls(z.data, z.indices.astype(small), z.indptr.astype(np.int32), z.shape[1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def matrix(self) -> Sparse:
        """The rows, to be calculated with."""
        parts = (self.shares, self.classes.astype(np.int32), self.starts)
        return sp.csr_array(parts, shape=(len(self), self.n_classes))

    def entries_of(self, rows: Int[np.ndarray, " chosen"]) -> Int[np.ndarray, " entry"]:
        """Where the entries of some rows are, in the order of the rows."""
        first, counts = self.starts[rows], self.starts[rows + 1] - self.starts[rows]
        before = np.cumsum(counts) - counts
        return np.repeat(first - before, counts) + np.arange(counts.sum())


@dataclass(frozen=True)
class StoredRows:
    """Sparse rows (image, class) of a batch, in the parts that its chunks are."""

    parts: tuple[Entries, ...]

    def bounds(self) -> Int[np.ndarray, " bound"]:
        """The first row of each part, and the number of rows."""
        return np.concatenate([[0], np.cumsum([len(part) for part in self.parts])])

    def of(self, chunk: slice) -> Sparse:
        """The rows of a chunk."""
        index = int(np.searchsorted(self.bounds(), chunk.start))
        part = self.parts[index]
        assert len(part) == chunk.stop - chunk.start
        return part.matrix()

    def whole(self) -> Sparse:
        """All rows at once, where there are few."""
        return sp.csr_array(sp.vstack([part.matrix() for part in self.parts], format="csr"))

    def per_class(self) -> Int[np.ndarray, " class"]:
        """How many entries each class has."""
        n_classes = self.parts[0].n_classes
        return sum(
            (np.bincount(part.classes, minlength=n_classes) for part in self.parts),
            start=np.zeros(n_classes, np.int64),
        )

    def weighed(self, votes: Sparse, known: Sparse) -> Sparse:
        """`votes` (row, image or shot) times these rows, and those of the shots after them."""
        if len(self.parts) == 1:
            every = self.parts[0].matrix()
            return votes @ (sp.vstack([every, known], format="csr") if known.shape[0] else every)
        wanted, index = np.unique(votes.indices, return_inverse=True)
        taken = self._rows(wanted, known)
        smaller = sp.csr_array(
            (votes.data, index.astype(np.int32), votes.indptr),
            shape=(votes.shape[0], len(wanted)),
        )
        return smaller @ taken

    def _rows(self, wanted: Int[np.ndarray, " chosen"], known: Sparse) -> Sparse:
        """Some rows, given in increasing order, of images and then of shots."""
        bounds = self.bounds()
        ends = np.searchsorted(wanted, bounds)
        shares, classes, counts = [], [], []
        for part, (first, last), start in zip(self.parts, pairwise(ends), bounds, strict=False):
            rows = (wanted[first:last] - start).astype(np.int64)
            chosen = part.entries_of(rows)
            shares.append(part.shares[chosen])
            classes.append(part.classes[chosen].astype(np.int32))
            counts.append(part.starts[rows + 1] - part.starts[rows])
        shots = known[wanted[ends[-1] :] - bounds[-1]]
        shares.append(shots.data)
        classes.append(shots.indices)
        counts.append(np.diff(shots.indptr))
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int32)
        parts = (np.concatenate(shares), np.concatenate(classes), starts)
        return sp.csr_array(parts, shape=(len(wanted), known.shape[1]))
