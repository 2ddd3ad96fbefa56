"""The queries of a mixture, in memory or not, and what is kept of them between passes."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import DTypeLike

from transduce.mixtures.family import ComponentFamily
from transduce.simplex.passes import chunks_of
from transduce.simplex.probabilities import blocks

Features = Float[np.ndarray, "row feature"]
Statistic = Float[np.ndarray, "row statistic"]


@runtime_checkable
class Queries(Protocol):
    """The rows of a batch, some at a time, wherever they are kept.

    The same rows must be the same bits whenever they are asked for.
    """

    def __len__(self) -> int:
        """Number of rows."""
        ...

    @property
    def width(self) -> int:
        """Number of columns."""
        ...

    def rows(self, chosen: slice) -> Float[np.ndarray, "row feature"]:
        """Some of the rows."""
        ...


@dataclass(frozen=True)
class ArrayQueries:
    """Rows in memory."""

    array: Float[np.ndarray, "row feature"]

    def __len__(self) -> int:
        return len(self.array)

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.array.shape[1]

    def rows(self, chosen: slice) -> Float[np.ndarray, "row feature"]:
        """Some of the rows."""
        return self.array[chosen]


class Kept:
    """What stays in memory between passes: the log densities, and T(x) of a batch of one block.

    A row's log densities are kept relative to its first largest one, so that float32 has digits
    to spare for the classes that compete.
    """

    def __init__(self, n_queries: int, n_classes: int, dtype: DTypeLike) -> None:
        self.densities = np.empty((n_queries, n_classes), dtype)
        self.largest, self.log_carrier = np.zeros(n_queries), np.zeros(n_queries)
        self.statistic: Statistic | None = None


@dataclass(frozen=True)
class MixtureBatch:
    """What stays the same from pass to pass, and is shared with whoever works on chunks."""

    queries: Queries
    start: Queries | None  # first assignments
    family: ComponentFamily
    n_classes: int
    hard: bool
    width: int  # statistics of a row
    center: Float[np.ndarray, " statistic"] | None = None  # for products in float32
    kept: Kept | None = None

    def chunks(self) -> list[slice]:
        """The chunks of the queries."""
        return chunks_of(len(self.queries))

    def blocks(self, chunk: slice) -> list[slice]:
        """The blocks of a chunk: what is worked on at a time."""
        parts = blocks(chunk.stop - chunk.start, max(self.n_classes, self.width))
        return [slice(chunk.start + part.start, chunk.start + part.stop) for part in parts]

    def statistic(self, features: Features) -> Statistic:
        """T(x) of a block of queries."""
        kept = self.kept
        if kept is not None and kept.statistic is not None:
            return kept.statistic
        statistic = self.family.statistic(features)
        if kept is not None and len(features) == len(self.queries):
            kept.statistic = statistic
        return statistic


def middle(queries: Queries, family: ComponentFamily) -> Float[np.ndarray, " statistic"]:
    """The mean of T(x) over the first queries, near which the others are."""
    return family.statistic(queries.rows(slice(0, 1024))).mean(0)
