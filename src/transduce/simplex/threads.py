"""Threads: rows of a kernel over a pool of its own, matrix products over BLAS's.

The compiled kernels release the GIL, so plain threads do for them. BLAS splits even small products
over its threads, and on a busy machine then waits a hundred times longer for the slower half
than the whole product takes; so small ones are kept in one thread.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

SMALLEST_SHARE = 20_000  # entries; below this, handing work to a thread costs more than it saves

ROWS_OF_PRODUCT = 256  # at a time; a product of fewer is not worth a second thread
SMALLEST_PRODUCT = 2**24  # multiplications; about 1 ms in one thread

SMALL_PRODUCT = 2**28  # multiplications; about 20 ms in one thread

_limit: ContextVar[int | None] = ContextVar("thread limit", default=None)


@contextmanager
def single_thread() -> Iterator[None]:
    """Keep kernels in the calling thread: for workers that are parallel already."""
    token = _limit.set(1)
    try:
        yield
    finally:
        _limit.reset(token)


def over_rows(work: Callable[[slice], Result], rows: int, width: int) -> list[Result]:
    """Call `work` on slices that cover `rows`, in parallel where that pays; return the results."""
    available = _limit.get() or available_cores()
    shares = max(1, min(available, rows, rows * width // SMALLEST_SHARE))
    # Shares interleave in blocks of rows rather than halves, because costly rows sit together.
    pieces = min(rows, shares * 4) if shares > 1 else 1
    bounds = [rows * i // pieces for i in range(pieces + 1)]
    slices = [slice(a, b) for a, b in pairwise(bounds) if b > a]
    if shares == 1:
        return [work(piece) for piece in slices]
    return list(_pool().map(work, slices))


def over_slices(work: Callable[[slice], Result], slices: list[slice]) -> list[Result]:
    """`work` on given slices, at once if there are several; the results in order."""
    if len(slices) == 1 or (_limit.get() or available_cores()) == 1:
        return [work(piece) for piece in slices]
    return list(_pool().map(work, slices))


def a_few_at_a_time(work: Callable[[slice], Result], slices: Sequence[slice]) -> Iterator[Result]:
    """`work` of every slice in their order, as many at once as there are cores.

    One more waits its turn, so that no core is idle until the slowest is done; no other result is
    made before the first is taken.
    """
    cores = _limit.get() or available_cores()
    if cores == 1 or len(slices) == 1:
        yield from map(work, slices)
        return
    begun: deque[Future[Result]] = deque()
    try:
        for piece in slices:
            begun.append(_pool().submit(work, piece))
            if len(begun) > cores:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        for left in begun:
            left.cancel()


def product(
    left: Float[np.ndarray, "row inner"], right: Float[np.ndarray, "inner column"]
) -> Float[np.ndarray, "row column"]:
    """`left @ right` where BLAS is kept to one thread: blocks of rows at once.

    The blocks do not depend on the number of threads, so that the bits do not either.
    """
    starts = range(0, len(left), ROWS_OF_PRODUCT)
    if len(starts) <= 1 or left.size * right.shape[1] < SMALLEST_PRODUCT:
        return left @ right
    found = np.empty((len(left), right.shape[1]), np.result_type(left, right))

    def fill(rows: slice) -> None:
        np.matmul(left[rows], right, out=found[rows])

    over_slices(fill, [slice(start, start + ROWS_OF_PRODUCT) for start in starts])
    return found


@contextmanager
def one_blas_thread(multiplications: int) -> Iterator[None]:
    """Keep matrix products in one thread if the largest of them is small.

    The setting belongs to the whole process: the first to enter makes it, the last restores it.
    """
    if multiplications > SMALL_PRODUCT:
        yield
        return
    with _lock:
        _inside.append(_inside[-1] if _inside else _blas().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _inside.pop()
            if not _inside:
                limit.restore_original_limits()


_lock = Lock()
_inside: "list[ThreadpoolController]" = []


@cache
def _blas() -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def available_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available_cores(), thread_name_prefix="transduce")
