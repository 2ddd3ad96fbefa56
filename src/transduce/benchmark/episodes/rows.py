"""Draw rows from the pools of classes: the pieces that protocols are made of."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int64

MOST_REDRAWS = 10_000

Rows = Int64[np.ndarray, " _row"]
Pools = list[Rows]  # for each class, the rows that may be drawn
Counts = Int64[np.ndarray, " _class"]


class PoolTooSmall(Exception):
    """The classes drawn have fewer images than wanted; another draw may do."""


def until_enough(attempt: Callable[[], Rows]) -> Rows:
    """Return the first attempt whose classes have enough images.

    Raises
    ------
    PoolTooSmall
        After `MOST_REDRAWS` attempts.
    """
    for _ in range(MOST_REDRAWS):
        try:
            return attempt()
        except PoolTooSmall:
            continue
    raise PoolTooSmall(f"classes too small in each of {MOST_REDRAWS:,} draws")


def from_pool(random: np.random.Generator, pools: Pools, present: int, queries: int) -> Rows:
    """Return `queries` rows, drawn uniformly from the union of `present` random classes."""
    classes = random.choice(len(pools), present, replace=False)
    pool = np.concatenate([pools[k] for k in classes])
    if len(pool) < queries:
        raise PoolTooSmall
    return random.choice(pool, queries, replace=False)


def up_to(random: np.random.Generator, pools: Pools, present: int, queries: int) -> Rows:
    """Return at most `queries` rows from the union of `present` random classes."""
    classes = random.choice(len(pools), present, replace=False)
    pool = np.concatenate([pools[k] for k in classes])
    return random.choice(pool, min(queries, len(pool)), replace=False)


def of_counts(random: np.random.Generator, pools: Pools, counts: Counts) -> Rows:
    """Return `counts[i]` rows of the i-th of `len(counts)` random classes."""
    classes = random.choice(len(pools), len(counts), replace=False)
    if any(len(pools[k]) < count for k, count in zip(classes, counts, strict=True)):
        raise PoolTooSmall
    drawn = zip(classes, counts, strict=True)
    return np.concatenate([random.choice(pools[k], count, replace=False) for k, count in drawn])


def even_counts(total: int, parts: int) -> Counts:
    """Return `parts` whole numbers with the sum `total`, the larger ones first."""
    share, rest = divmod(total, parts)
    return np.array([share + 1] * rest + [share] * (parts - rest))


def rounded_counts(shares: Float[np.ndarray, " n"]) -> Counts:
    """Return whole numbers with the sum of `shares`; the largest remainders are rounded up."""
    counts = np.floor(shares).astype(np.int64)
    missing = round(float(shares.sum())) - int(counts.sum())
    counts[np.argsort(counts - shares, kind="stable")[:missing]] += 1
    return counts
