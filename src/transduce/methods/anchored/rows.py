"""The images of a batch as `Anchored` reads them: some rows at a time, wherever they are kept."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float32, Int

Rows = Float32[np.ndarray, "row feature"]

ROWS_AT_ONCE = 1 << 10  # that are made unit vectors


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
    unit = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):  # what is needed meanwhile stays small
        part = unit[start : start + ROWS_AT_ONCE]
        part[:] = rows[start : start + ROWS_AT_ONCE]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return unit
