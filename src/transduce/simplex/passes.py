"""Passes over a batch in chunks of its rows: by threads of this process, or by a cluster.

What is done to a chunk is a function of the batch, of what the pass shares with every chunk, and of
the chunk. Its results come in the order of the chunks, which depend on the number of rows alone, so
that sums over them are the same to the bit whoever worked on which.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from transduce.simplex.threads import a_few_at_a_time, single_thread

ONE_CHUNK = 1 << 14  # rows that are worked on as a whole
CHUNKS = 4  # or a multiple of it, so that 2 and 4 workers have equal shares

Result = TypeVar("Result")
Work = Callable[[Any, Any, slice], Result]


@runtime_checkable
class Passes(Protocol):
    """Who works on the chunks: threads of this process, or the workers of a cluster."""

    def __call__(
        self, work: Work[Result], batch: object, shared: object, chunks: Sequence[slice]
    ) -> Iterator[Result]:
        """`work(batch, shared, chunk)` of every chunk, in the order of the chunks."""
        ...


@runtime_checkable
class Checkpoint(Protocol):
    """Where the state of a batch is kept after each step, so that a stopped run can go on."""

    def last(self) -> Mapping[str, np.ndarray] | None:
        """What was kept last; None if there is nothing."""
        ...

    def keep(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep these arrays instead of what was kept before."""
        ...


def chunks_of(n_rows: int, chunk_rows: int = ONE_CHUNK) -> list[slice]:
    """The parts that a batch is worked on in, by its size alone."""
    count = 1 if n_rows <= chunk_rows else CHUNKS * -(-n_rows // (CHUNKS * chunk_rows))
    bounds = [n_rows * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]


def in_threads(
    work: Work[Result], batch: object, shared: object, chunks: Sequence[slice]
) -> Iterator[Result]:
    """Chunks over the threads of this process; the blocks of a single one are spread instead."""
    if len(chunks) == 1:
        yield work(batch, shared, chunks[0])
        return

    def alone(chunk: slice) -> Result:
        with single_thread():
            return work(batch, shared, chunk)

    yield from a_few_at_a_time(alone, chunks)
