"""Rows of a feature store by number, without holding all of them."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32, Int

from transduce.errors import InvalidStore
from transduce.features.store import BLOCK_ROWS, FeatureStore

MOST_NAMED = 5


def unit_blocks(
    store: FeatureStore, rows: Int[np.ndarray, " chosen"]
) -> Iterator[tuple[slice, Float32[np.ndarray, "row feature"]]]:
    """(where in `rows`, unit vectors) for increasing row numbers, some thousand at a time."""
    first = 0
    for shard in store.meta.shards:
        low, high = np.searchsorted(rows, [first, first + shard.rows])
        array = store.shard_embeddings(shard)
        for start in range(low, high, BLOCK_ROWS):
            part = slice(start, min(start + BLOCK_ROWS, high))
            block = np.asarray(array[rows[part] - first], dtype=np.float32)
            yield part, _unit(store, block, rows[part])
        first += shard.rows


def _unit(
    store: FeatureStore,
    block: Float32[np.ndarray, "row feature"],
    rows: Int[np.ndarray, " row"],
) -> Float32[np.ndarray, "row feature"]:
    lengths = np.linalg.norm(block, axis=1)
    wrong = ~np.isfinite(lengths) | (lengths == 0.0)
    if wrong.any():  # one NaN would make every statistic NaN
        names = store.keys()
        shown = ", ".join(names[row] for row in rows[wrong][:MOST_NAMED])
        more = int(wrong.sum()) - MOST_NAMED
        raise InvalidStore(
            f"Expected finite features with a direction in {store.folder}, found NaN, infinity or "
            f"only zeros in row {rows[wrong][0]} ({shown}{f' and {more} more' if more > 0 else ''})"
            "; embed these images again, or remove them."
        )
    unit: Float32[np.ndarray, "row feature"] = block / lengths[:, np.newaxis]
    return unit
