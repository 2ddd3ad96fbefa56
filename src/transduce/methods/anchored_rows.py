"""The images of a batch as `Anchored` reads them: some rows at a time, wherever they are kept."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float32, Int

Rows = Float32[np.ndarray, "row feature"]

ONE_CHUNK = 1 << 14  # images that are worked on as a whole
CHUNKS = 4  # or a multiple of it, so that 2 and 4 workers have equal shares


class RowSource(Protocol):
    """Unit vectors (float32) of the images to label, in memory or in files.

    The same rows must be the same bits whenever they are asked for, and in whatever company.
    """

    def __len__(self) -> int:
        """Number of images."""
        ...

    def images(self, rows: slice) -> Rows:
        """Embeddings by the encoder of the names."""
        ...

    def view(self, rows: slice) -> Rows | None:
        """Embeddings by the encoder that images are compared by; None if it is the same."""
        ...

    def compared(self, rows: Int[np.ndarray, " chosen"]) -> Rows:
        """The view, or without one the embeddings, of any rows in the order given."""
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows in memory; made by `of`."""

    unit: Rows
    unit_view: Rows | None = None

    @classmethod
    def of(
        cls,
        rows: Float[np.ndarray, "row feature"],
        view: Float[np.ndarray, "row view"] | None = None,
    ) -> "ArrayRows":
        """Rows of any length and precision, as unit vectors."""
        return cls(unit_float32(rows), None if view is None else unit_float32(view))

    def __len__(self) -> int:
        return len(self.unit)

    def images(self, rows: slice) -> Rows:
        """Embeddings by the encoder of the names."""
        return self.unit[rows]

    def view(self, rows: slice) -> Rows | None:
        """Embeddings by the encoder that images are compared by; None if it is the same."""
        return None if self.unit_view is None else self.unit_view[rows]

    def compared(self, rows: Int[np.ndarray, " chosen"]) -> Rows:
        """The view, or without one the embeddings, of any rows in the order given."""
        return (self.unit if self.unit_view is None else self.unit_view)[rows]


def unit_float32(rows: Float[np.ndarray, "row feature"]) -> Rows:
    """Unit vectors in float32."""
    rows = rows.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def chunks_of(n_rows: int, chunk_rows: int = ONE_CHUNK) -> list[slice]:
    """The parts that a batch is worked on in, by its size alone.

    Sums are formed in each and added in their order, so that the answer does not depend on who
    works on which.
    """
    count = 1 if n_rows <= chunk_rows else CHUNKS * -(-n_rows // (CHUNKS * chunk_rows))
    bounds = [n_rows * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]
