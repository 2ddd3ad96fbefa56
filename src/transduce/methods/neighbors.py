"""Nearest neighbors by cosine, and graphs of them.

Cosines are computed block by block, so that memory grows with the number of rows and not with its
square.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from transduce.simplex.probabilities import blocks

ROWS_OF_PATHS = 64  # numbers a row that paths of two steps may need, on average


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
    small = np.int32 if max(n_rows * count, n_others) < 1 << 31 else np.int64
    starts = np.arange(n_rows + 1, dtype=small) * small(count)
    indices = neighbors.indices.ravel().astype(small)
    return csr_array((weights, indices, starts), shape=(n_rows, n_others))


def mutual_graph(unit: Float[np.ndarray, "row feature"], count: int) -> csr_array:
    """Return (W + W') / (2 count) for the graph W of the `count` nearest neighbors in a batch."""
    return both_ways(nearest_neighbors(unit, unit, count, skip_self=True), count)


def both_ways(neighbors: Neighbors, count: int) -> csr_array:
    """Return (W + W') / (2 count) for the graph W of neighbors in a batch."""
    graph = neighbor_graph(neighbors, len(neighbors.indices))
    graph.data /= 2 * count
    return csr_array(graph + graph.T)


def agreement_nearby(
    graph: csr_array, labels: Int[np.ndarray, " row"]
) -> Float[np.ndarray, " row"]:
    """Return the share of the neighbors' neighbors of each row that have its label (row,).

    Parameters
    ----------
    graph : sparse array of shape (row, other)
        Weights of neighbors, of which the first `row` are the rows themselves.
    labels : array of int of shape (row,)
        The class of each row. The way back to the row itself does not count; a row without
        neighbors agrees with itself.
    """
    near = csr_array(graph[:, : len(labels)])
    share = np.ones(len(labels), np.float32)
    for rows in blocks(len(labels), ROWS_OF_PATHS):
        paths = (near[rows] @ near).tocoo()
        row, weight = (
            paths.coords[0],
            paths.data * (paths.coords[0] + rows.start != paths.coords[1]),
        )
        same = labels[rows][row] == labels[paths.coords[1]]
        size = rows.stop - rows.start
        total = np.bincount(row, weight, size)
        agreeing = np.bincount(row, weight * same, size)
        share[rows] = np.where(total > 0, agreeing / np.maximum(total, 1e-12), 1.0)
    return share
