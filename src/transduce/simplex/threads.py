"""Rows spread over threads: the compiled kernels release the GIL, so plain threads do."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import TypeVar

Result = TypeVar("Result")

SMALLEST_SHARE = 20_000  # entries; below this, handing work to a thread costs more than it saves

_limit: ContextVar[int | None] = ContextVar("thread limit", default=None)


@contextmanager
def single_thread() -> Iterator[None]:
    """Inside, kernels stay in the calling thread: for workers that are parallel already."""
    token = _limit.set(1)
    try:
        yield
    finally:
        _limit.reset(token)


def over_rows(work: Callable[[slice], Result], rows: int, width: int) -> list[Result]:
    """`work` on slices that cover `rows`, at once where that pays; the results in order."""
    available = _limit.get() or _cores()
    shares = max(1, min(available, rows, rows * width // SMALLEST_SHARE))
    # Shares interleave in blocks of rows rather than halves, because costly rows sit together.
    pieces = min(rows, shares * 4) if shares > 1 else 1
    bounds = [rows * i // pieces for i in range(pieces + 1)]
    slices = [slice(a, b) for a, b in pairwise(bounds) if b > a]
    if shares == 1:
        return [work(piece) for piece in slices]
    return list(_pool().map(work, slices))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_cores(), thread_name_prefix="transduce")
