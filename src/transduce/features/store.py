"""Reading a feature store: rows as float32, block by block, each with its file name."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float16, Float32

from transduce.encoders.encoder import Identity
from transduce.errors import InvalidStore
from transduce.features.layout import (
    RECORDS,
    SKIPPED,
    Meta,
    Shard,
    Skip,
    embeddings_name,
    metadata_name,
    read_meta,
)

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_ROWS = 8192


@dataclass(frozen=True, slots=True)
class FeatureStore:
    """A complete store. Open it with `FeatureStore.open(folder)`."""

    folder: Path
    meta: Meta

    @classmethod
    def open(cls, folder: str | Path) -> "FeatureStore":
        folder = Path(folder)
        meta = read_meta(folder)
        if not meta.complete:
            done = len(list((folder / RECORDS).glob("*.json")))
            raise InvalidStore(
                f"Expected a complete feature store, found an unfinished one with {done:,} "
                f"{'shard' if done == 1 else 'shards'} done in {folder}; finish it with: "
                f"transduce embed {meta.source} --out {folder}"
            )
        return cls(folder, meta)

    def __len__(self) -> int:
        return self.meta.rows

    @property
    def identity(self) -> Identity:
        return self.meta.identity

    @property
    def dimension(self) -> int:
        return self.meta.identity.dimension

    def shard_embeddings(self, shard: Shard) -> Float16[np.ndarray, "row feature"]:
        """The rows of one shard, mapped into memory and read only when touched."""
        path = self.folder / embeddings_name(shard.index)
        try:
            rows = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InvalidStore(f"Expected a shard at {path}, found {error}; embed again.") from None
        if rows.shape != (shard.rows, self.dimension):
            raise InvalidStore(
                f"Expected {shard.rows} rows of {self.dimension} numbers in {path}, "
                f"found shape {rows.shape}; embed again."
            )
        return rows

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Float32[np.ndarray, "row feature"]]:
        """All rows in order, at most `rows` at a time, so that memory stays flat."""
        for shard in self.meta.shards:
            array = self.shard_embeddings(shard)
            for start in range(0, len(array), rows):
                yield np.asarray(array[start : start + rows], dtype=np.float32)

    def embeddings(self) -> Float32[np.ndarray, "row feature"]:
        """All rows at once."""
        whole = np.empty((len(self), self.dimension), np.float32)
        start = 0
        for block in self.blocks():
            whole[start : start + len(block)] = block
            start += len(block)
        return whole

    def metadata(self, columns: list[str] | None = None) -> "pa.Table":
        """file_name, image_path, sha256, width, height, converted; one row per embedding."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        paths = [self.folder / metadata_name(shard.index) for shard in self.meta.shards]
        return pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])

    def shard_metadata(self, shard: Shard) -> list[dict[str, Any]]:
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]]
        rows = pq.read_table(self.folder / metadata_name(shard.index)).to_pylist()
        return rows

    def keys(self) -> list[str]:
        """The file name of each row."""
        names: list[str] = self.metadata(["file_name"])["file_name"].to_pylist()
        return names

    def duplicates_of(self) -> list[str | None]:
        """For each row the first file with exactly the same content, if it is not the first."""
        table = self.metadata(["file_name", "sha256"])
        return first_of_same(table["file_name"].to_pylist(), table["sha256"].to_pylist())

    def skipped(self) -> list[Skip]:
        path = self.folder / SKIPPED
        if not path.exists():
            return []
        with path.open(encoding="utf-8", newline="") as file:
            return [Skip(**row) for row in csv.DictReader(file)]


def first_of_same(names: list[str], hashes: list[str]) -> list[str | None]:
    first: dict[str, str] = {}
    same: list[str | None] = []
    for name, digest in zip(names, hashes, strict=True):
        # A source without content (imported features) has no hashes, hence no duplicates.
        same.append(first.get(digest) if digest else None)
        first.setdefault(digest, name)
    return same
