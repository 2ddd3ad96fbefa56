"""Nearest neighbors by cosine, and graphs of them.

Cosines are computed block by block, so that memory grows with the number of rows and not with its
square.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from transduce.simplex.probabilities import blocks


class Neighbors(NamedTuple):
    """Nearest neighbors of each row, nearest first."""

    indices: Int[np.ndarray, "row neighbor"]
    cosines: Float[np.ndarray, "row neighbor"]


def nearest_neighbors(
    rows: Float[np.ndarray, "row feature"],
    among: Float[np.ndarray, "other feature"],
    count: int,
    *,
    skip_self: bool,
) -> Neighbors:
    """Return the rows of `among` with the largest cosine to each row, nearest first.

    There are `count` of them, or as many as `among` has; among equals, the lower index comes first.
    Time is one matrix product and `count` passes over it: meant for few neighbors.

    Parameters
    ----------
    rows : array of shape (row, feature)
        Unit vectors.
    among : array of shape (other, feature)
        Unit vectors to choose neighbors from.
    count : int
        Neighbors of each row.
    skip_self : bool
        True if `among` is `rows`: no row is its own neighbor. A duplicate of it may be.
    """
    count = min(count, len(among) - skip_self)
    indices = np.empty((len(rows), count), dtype=np.int64)
    cosines = np.empty((len(rows), count), dtype=np.result_type(rows, among))
    for block in blocks(len(rows), max(len(among), rows.shape[1])) if count else []:
        remaining = rows[block] @ among.T
        positions = np.arange(len(remaining))
        if skip_self:
            remaining[positions, positions + block.start] = -np.inf
        for rank in range(count):
            best = remaining.argmax(1)
            indices[block, rank] = best
            cosines[block, rank] = remaining[positions, best]
            remaining[positions, best] = -np.inf
    return Neighbors(indices, cosines)


def neighbor_graph(neighbors: Neighbors, n_others: int) -> csr_array:
    """Return the directed graph W (row, other): cosines of neighbors, negative ones as 0."""
    n_rows, count = neighbors.indices.shape
    weights = np.maximum(neighbors.cosines, 0).ravel()
    starts = np.arange(n_rows + 1) * count
    return csr_array((weights, neighbors.indices.ravel(), starts), shape=(n_rows, n_others))


def mutual_graph(unit: Float[np.ndarray, "row feature"], count: int) -> csr_array:
    """Return (W + W') / (2 count) for the graph W of the `count` nearest neighbors in a batch."""
    graph = neighbor_graph(nearest_neighbors(unit, unit, count, skip_self=True), len(unit))
    graph.data /= 2 * count
    return csr_array(graph + graph.T)
