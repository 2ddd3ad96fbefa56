"""Sums of rows by label, block by block."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from transduce.simplex.probabilities import blocks


def group_sums(
    rows: Float[np.ndarray, "row column"],
    labels: Int[np.ndarray, " row"],
    n_groups: int,
    transform: Callable[[Float[np.ndarray, "part column"]], Float[np.ndarray, "part other"]],
) -> Float[np.ndarray, "group other"]:
    """Return the sums (group, other) of transformed rows by label, in float64.

    A label that no row has gets zeros.
    """
    sums = np.zeros((n_groups, transform(rows[:1]).shape[1]))
    order = np.argsort(labels, kind="stable")
    for part in blocks(len(rows), sums.shape[1]):
        chosen = order[part]
        present, first = np.unique(labels[chosen], return_index=True)
        sums[present] += np.add.reduceat(transform(rows[chosen]), first, dtype=np.float64)
    return sums
