"""The rows of feature stores as a method reads them, a chunk at a time: they stay on disk."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Float16, Float32, Int

from transduce.features.layout import embeddings_name
from transduce.features.store import FeatureStore
from transduce.labeling.views import View
from transduce.methods.anchored.batch import ArrayRows, RowSource, unit_float32

KEPT_BYTES = 1 << 28  # of rows in float32; fewer are read once and kept
MOST_OPEN = 4096  # shards

Chosen = Int[np.ndarray, " chosen"]
Rows = Float32[np.ndarray, "row feature"]


@dataclass(frozen=True)
class StoreRows:
    """Rows of a store, chosen by their numbers; another process reads them by the same paths."""

    folder: str
    starts: Int[np.ndarray, " bound"]  # of each shard; the last is the number of rows
    indices: tuple[int, ...]  # the number of each shard in its file's name
    chosen: Chosen

    @classmethod
    def of(cls, store: FeatureStore, chosen: Chosen) -> "StoreRows":
        """Some rows of a store, in this order."""
        shards = store.meta.shards
        starts = np.concatenate([[0], np.cumsum([shard.rows for shard in shards])])
        folder = str(store.folder.absolute())
        return cls(folder, starts, tuple(shard.index for shard in shards), chosen)

    def __len__(self) -> int:
        return len(self.chosen)

    def take(self, rows: Chosen | slice) -> Rows:
        """Unit vectors of some of the rows, in any order."""
        wanted = self.chosen[rows]
        first = self._shard(0)
        taken = np.empty((len(wanted), first.shape[1]), first.dtype)
        shard_of = np.searchsorted(self.starts, wanted, side="right") - 1
        for shard in np.unique(shard_of):
            here = np.flatnonzero(shard_of == shard)
            taken[here] = self._shard(int(shard))[wanted[here] - self.starts[shard]]
        return unit_float32(taken)

    def _shard(self, shard: int) -> Float16[np.ndarray, "row feature"]:
        return _mapped(str(Path(self.folder) / embeddings_name(self.indices[shard])))


@lru_cache(MOST_OPEN)
def _mapped(path: str) -> Float16[np.ndarray, "row feature"]:
    return np.load(path, mmap_mode="r", allow_pickle=False)


@dataclass(frozen=True)
class StoredBatch:
    """The images of a batch in a store, and in a second one if they are compared by a view."""

    names: StoreRows
    looks: StoreRows | None = None

    def __len__(self) -> int:
        return len(self.names)

    def images(self, rows: slice) -> Rows:
        """Embeddings by the encoder of the names."""
        return self.names.take(rows)

    def view(self, rows: slice) -> Rows | None:
        """Embeddings by the encoder that images are compared by; None if it is the same."""
        return None if self.looks is None else self.looks.take(rows)

    def compared(self, rows: Chosen) -> Rows:
        """The view, or without one the embeddings, of any rows in the order given."""
        return (self.names if self.looks is None else self.looks).take(rows)


def batch_rows(store: FeatureStore, view: View | None, rows: Chosen) -> RowSource:
    """Return the rows of a batch: in memory if they are few, else where they are."""
    stored = StoredBatch(
        StoreRows.of(store, rows),
        None if view is None else StoreRows.of(view.store, view.rows[rows]),
    )
    width = store.dimension + (0 if view is None else view.store.dimension)
    if 4 * width * len(rows) > KEPT_BYTES:
        return stored
    return ArrayRows(stored.images(slice(None)), stored.view(slice(None)))
