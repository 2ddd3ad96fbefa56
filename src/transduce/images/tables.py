"""Images inside parquet files, as datasets on the Hugging Face hub hold them.

A column of bytes, or of {bytes, path}; an image is known by the file, its row and its own name.
Listing reads the names alone; images are read by row group, the last one being kept.
"""

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transduce.errors import NoImages, refused_in_words
from transduce.images.entries import Entry, Unreadable

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

COLUMN = "file_name"  # a table that has it is a list of files


def image_column(schema: "pa.Schema") -> str | None:
    """Return the first column of whole images; None without one, and for a list of paths."""
    import pyarrow as pa

    if COLUMN in schema.names:
        return None

    def is_bytes(kind: "pa.DataType") -> bool:
        return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))

    for field in schema:
        kind = field.type
        inside = {part.name: part.type for part in kind} if pa.types.is_struct(kind) else {}
        if is_bytes(kind) or ("bytes" in inside and is_bytes(inside["bytes"])):
            return str(field.name)
    return None


def table_entries(path: str, key: str, mtime: float) -> list[Entry]:
    """Return the entries of the images inside a table; `key` is how the user knows the file."""
    with readable_table(path), _open(path) as table:
        column = image_column(table.schema_arrow)
        names = _names(table, column) if column else []
    return [
        Entry(f"{key}/{row:06d}" + (f"/{name}" if name else ""), path, -1, mtime, row)
        for row, name in enumerate(names)
    ]


def _names(table: "pq.ParquetFile", column: str) -> list[str]:
    import pyarrow as pa

    kind = table.schema_arrow.field(column).type
    if not pa.types.is_struct(kind) or "path" not in {part.name for part in kind}:
        return [""] * int(table.metadata.num_rows)
    values = table.read(columns=[f"{column}.path"])[column].to_pylist()
    return [str((value or {}).get("path") or "").rpartition("/")[2] for value in values]


def read_row(path: str, row: int) -> bytes:
    """Return the bytes of the image in a row; raises `Unreadable` where there are none."""
    starts, column = _layout(path)
    group = int(np.searchsorted(starts, row, side="right")) - 1
    value = _row_group(path, group, column)[row - int(starts[group])].as_py()
    data: bytes | None = value.get("bytes") if isinstance(value, dict) else value
    if not data:
        raise Unreadable("empty", "the table has no bytes in this row")
    return data


@lru_cache(maxsize=16)
def _layout(path: str) -> tuple[np.ndarray, str]:
    """Return the first row of each row group, and the column of images."""
    with _open(path) as table:
        groups = range(table.metadata.num_row_groups)
        sizes = [table.metadata.row_group(group).num_rows for group in groups]
        column = image_column(table.schema_arrow)
    assert column is not None  # it was listed
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]), column


@lru_cache(maxsize=1)
def _row_group(path: str, group: int, column: str) -> "pa.ChunkedArray":
    with _open(path) as table:
        return table.read_row_group(group, columns=[column])[column]


@contextlib.contextmanager
def _open(path: str) -> Iterator["pq.ParquetFile"]:
    import pyarrow.parquet as pq

    with contextlib.ExitStack() as opened:
        source: Any = path
        if "://" in path:
            from transduce.images.remote import open_remote

            source = opened.enter_context(open_remote(path))
        yield opened.enter_context(pq.ParquetFile(source))


def readable_table(path: str | Path) -> contextlib.AbstractContextManager[None]:
    """Refuse a damaged table in words."""
    return refused_in_words(
        lambda reason: NoImages(f"Expected a parquet file, found {path}: {reason}.")
    )
