"""The list of images of a run, fixed before the first is read.

It is stored beside the features, one parquet row group per shard, so that a resumed run embeds
the same rows in the same order, and reads only the part it needs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.errors import InvalidStore, some_of
from transduce.images.entries import Entry
from transduce.machine.atomic import replace_file

if TYPE_CHECKING:
    import pyarrow as pa

MOST_NAMED = 3


class Manifest:
    """The entries on disk, in shards."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._path = path
        try:
            self._file = pq.ParquetFile(path)
        except Exception as error:  # a damaged parquet raises nearly anything
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InvalidStore:
        return InvalidStore(
            f"Expected the list of images in {self._path}, found it damaged ({error}); take a "
            "copy of it, or embed again into a new folder."
        )

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    @property
    def shards(self) -> int:
        """The number of shards."""
        return int(self._file.num_row_groups)

    def rows_of(self, shard: int) -> int:
        """Return the number of entries in a shard."""
        return int(self._file.metadata.row_group(shard).num_rows)

    def shard(self, index: int) -> list[Entry]:
        """Return the entries of a shard."""
        try:
            return [Entry(**row) for row in self._file.read_row_group(index).to_pylist()]
        except Exception as error:
            raise self._damaged(error) from None

    def __iter__(self) -> Iterator[Entry]:
        for index in range(self.shards):
            yield from self.shard(index)


def write_manifest(path: Path, shards: Sequence[Sequence[Entry]]) -> None:
    """Store the entries of each shard as a row group; the file appears whole or not at all."""
    import pyarrow.parquet as pq

    def write(temporary: Path) -> None:
        with pq.ParquetWriter(temporary, _schema()) as writer:
            for shard in shards:
                writer.write_table(_table(shard), row_group_size=max(1, len(shard)))

    replace_file(path, write)


@dataclass(frozen=True, slots=True)
class Changes:
    """How a source differs from the manifest made of it before."""

    new: tuple[Entry, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]  # other size or time of change

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changed)

    def describe(self) -> str:
        """Return the changes in words, with some file names."""
        parts = [
            ("new", [entry.key for entry in self.new]),
            ("gone", self.gone),
            ("changed", self.changed),
        ]
        return ", ".join(
            f"{len(keys):,} {word} ({some_of(keys, MOST_NAMED)})" for word, keys in parts if keys
        )


def compare(before: Manifest, now: Sequence[Entry]) -> Changes:
    """Return how the entries `now` differ from those of a manifest."""
    known: dict[tuple[str, str], list[Entry]] = {}
    for entry in now:
        known.setdefault((entry.key, entry.path), []).append(entry)
    gone, changed = [], []
    for old in before:
        same = known.get((old.key, old.path))
        if not same:
            gone.append(old.key)
        elif same.pop(0) != old:
            changed.append(old.key)
    left = {id(entry) for entries in known.values() for entry in entries}
    return Changes(tuple(e for e in now if id(e) in left), tuple(gone), tuple(changed))


def _schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            ("key", pa.string()),
            ("path", pa.string()),
            ("size", pa.int64()),
            ("mtime", pa.float64()),
            ("offset", pa.int64()),
            ("problem", pa.string()),
        ]
    )


def _table(entries: Sequence[Entry]) -> "pa.Table":
    import pyarrow as pa

    schema = _schema()
    columns: dict[str, Any] = {
        name: [getattr(entry, name) for entry in entries] for name in schema.names
    }
    return pa.table(columns, schema=schema)
