"""Reading a feature store: rows as float32, block by block, each with its file name."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float16, Float32, Int
from numpy.typing import DTypeLike

from transduce import validation
from transduce.encoders.encoder import Identity
from transduce.encoders.hub import DownloadBar, no_bar
from transduce.errors import InvalidStore
from transduce.features.layout import (
    RECORDS,
    SKIPPED,
    Meta,
    Shard,
    Skip,
    check_whole,
    embeddings_name,
    metadata_name,
    read_meta,
    read_skips,
)
from transduce.images.entries import is_url

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_ROWS = 8192


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FeatureStore:
    """The embeddings of images on disk, one row each, with their file names and their encoder.

    Made by `embed` or `import_features`, opened by `FeatureStore.open(folder)`. Rows stay on disk
    until they are read; `np.asarray(store)` reads all of them.

    Parameters
    ----------
    folder : Path
        Where the files are (layout in `transduce.features.layout`).
    meta : Meta
        The contents of `meta.json`: identity of the encoder, settings, counts, shards.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from transduce.features.importing import import_arrays
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = import_arrays(np.eye(3), ["a.jpg", "b.jpg", "c.jpg"], folder.name)
    >>> len(store), store.dimension, store.keys()
    (3, 3, ['a.jpg', 'b.jpg', 'c.jpg'])
    >>> np.asarray(store)[1]
    array([0., 1., 0.], dtype=float32)
    >>> folder.cleanup()
    """

    folder: Path
    meta: Meta

    @classmethod
    def open(cls, folder: str | Path, *, bar: DownloadBar = no_bar) -> "FeatureStore":
        """Open a complete store; raises `InvalidStore` if it is not one.

        One behind a URL that fsspec can read (s3://, gs://, hf:// ...) is fetched first, once:
        see `transduce.features.fetching`. `bar` shows the bytes that are fetched.
        """
        if is_url(folder):
            from transduce.features.fetching import fetch_store

            folder = fetch_store(str(folder), bar)
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
        """The encoder that made the features."""
        return self.meta.identity

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return self.meta.identity.dimension

    def shard_embeddings(self, shard: Shard) -> Float16[np.ndarray, "row feature"]:
        """Return the rows of a shard, mapped into memory and read only when touched."""
        path = self._whole(embeddings_name(shard.index), shard.embeddings_sha256)
        try:
            rows = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InvalidStore(f"Expected a shard at {path}, found {error}; embed again.") from None
        if rows.shape != (shard.rows, self.dimension):
            raise InvalidStore(
                f"Expected {shard.rows} rows of {self.dimension} numbers in {path}, "
                f"found shape {rows.shape}; embed again."
            )
        return rows

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Float32[np.ndarray, "row feature"]]:
        """Yield all rows in order, at most `rows` at a time."""
        for shard in self.meta.shards:
            array = self.shard_embeddings(shard)
            for start in range(0, len(array), rows):
                yield np.asarray(array[start : start + rows], dtype=np.float32)

    def embeddings(self) -> Float32[np.ndarray, "row feature"]:
        """Return all rows."""
        return self.take(np.arange(len(self)))

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("Expected copy=None or True: the rows of a store are read from disk.")
        return self.embeddings().astype(dtype or np.float32, copy=False)

    def take(self, rows: Int[np.ndarray, " chosen"]) -> Float32[np.ndarray, "chosen feature"]:
        """Return these rows, in any order, without holding the others."""
        taken = np.empty((len(rows), self.dimension), np.float32)
        first = 0
        for shard in self.meta.shards:
            inside = (rows >= first) & (rows < first + shard.rows)
            taken[inside] = self.shard_embeddings(shard)[rows[inside] - first]
            first += shard.rows
        return taken

    def unit_blocks(
        self, rows: Int[np.ndarray, " chosen"] | None = None, *, block_rows: int = BLOCK_ROWS
    ) -> Iterator[tuple[slice, Float32[np.ndarray, "row feature"]]]:
        """Yield rows as unit vectors, block by block.

        Parameters
        ----------
        rows : ndarray of int, shape (chosen,), optional
            Increasing row numbers; by default all rows.
        block_rows : int, default 8192
            The most rows of a block: memory is `4 * block_rows * dimension` bytes.

        Yields
        ------
        part : slice
            Where in `rows` the block is.
        block : ndarray of float32, shape (row, feature)
            Vectors of length 1.

        Raises
        ------
        InvalidStore
            For rows of NaN, infinity or zeros, with their file names: one of them would spoil
            every statistic of the batch.
        """
        chosen = np.arange(len(self)) if rows is None else rows
        first = 0
        for shard in self.meta.shards:
            low, high = np.searchsorted(chosen, [first, first + shard.rows])
            array = self.shard_embeddings(shard)
            for start in range(low, high, block_rows):
                part = slice(start, min(start + block_rows, high))
                block = np.asarray(array[chosen[part] - first], dtype=np.float32)
                yield part, self._unit(block, chosen[part])
            first += shard.rows

    def _unit(
        self, block: Float32[np.ndarray, "row feature"], numbers: Int[np.ndarray, " row"]
    ) -> Float32[np.ndarray, "row feature"]:
        def row_name(row: int) -> str:
            return f"row {numbers[row]} ({self.keys()[numbers[row]]})"

        where = f"the features in {self.folder}"
        return validation.unit_rows(where, block, error=InvalidStore, row_name=row_name)

    def metadata(self, columns: list[str] | None = None) -> "pa.Table":
        """Return file_name, image_path, sha256, width, height and converted of each row."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = [(metadata_name(each.index), each.metadata_sha256) for each in self.meta.shards]
        paths = [self._whole(name, digest) for name, digest in names]
        return pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])

    def shard_metadata(self, shard: Shard) -> list[dict[str, Any]]:
        """Return the metadata of a shard, a dict per row."""
        import pyarrow.parquet as pq

        path = self._whole(metadata_name(shard.index), shard.metadata_sha256)
        return pq.read_table(path).to_pylist()

    def _whole(self, name: str, digest: str) -> Path:
        """Return the path of a file of this store, refused if it is not as it was written."""
        check_whole(self.folder, name, digest, self.meta.source)
        return self.folder / name

    def column(self, name: str) -> list[Any]:
        """Return one column of the metadata, read shard by shard to hold it only once."""
        import pyarrow.parquet as pq

        values: list[Any] = []
        for shard in self.meta.shards:
            path = self._whole(metadata_name(shard.index), shard.metadata_sha256)
            values += pq.read_table(path, columns=[name])[name].to_pylist()
        return values

    def keys(self) -> list[str]:
        """Return the file name of each row."""
        return self.column("file_name")

    def duplicates_of(self) -> list[str | None]:
        """Return for each row the first file of the same content, None if it is the first."""
        short = np.array([hash(digest) for digest in self.column("sha256")], np.int64)
        if len(np.unique(short)) == len(short):  # as usual: the names need not be looked at
            return [None] * len(short)
        return first_of_same(self.keys(), self.column("sha256"))

    def skipped(self) -> list[Skip]:
        """Return the images that could not be embedded, each with its reason."""
        path = self.folder / SKIPPED
        return read_skips(path) if path.exists() else []


def first_of_same(names: list[str], hashes: list[str]) -> list[str | None]:
    """Return for each name the first of the same hash; None for the first, or without hash."""
    first: dict[str, str] = {}
    same: list[str | None] = []
    for name, digest in zip(names, hashes, strict=True):
        # A source without content (imported features) has no hashes, hence no duplicates.
        same.append(first.get(digest) if digest else None)
        first.setdefault(digest, name)
    return same
