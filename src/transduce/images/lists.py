"""Lists of images: a path per line, or a table with a `file_name` column.

Paths are relative to the list's own folder, as in Hugging Face's imagefolder; URLs stay URLs.
"""

import csv
import os
from pathlib import Path

from transduce.errors import NoImages
from transduce.images.entries import Entry, local_entry
from transduce.images.tables import COLUMN, readable_table
from transduce.machine.atomic import cell_text
from transduce.machine.network import check_local

LISTS = frozenset({".txt", ".csv", ".tsv", ".parquet"})


def listed(path: Path) -> list[Entry]:
    """Return the entries that a list file names."""
    readers = {".txt": _lines, ".csv": _separated, ".tsv": _separated, ".parquet": _parquet}
    names = readers[path.suffix.lower()](path)
    return [_entry(name, path.parent) for name in names if name]


def _entry(name: str, folder: Path) -> Entry:
    if "://" in name:
        check_local(name)
        return Entry(name, name)
    return local_entry(name, folder / os.path.expanduser(name))  # noqa: PTH111 - `name` stays a key


def _lines(path: Path) -> list[str]:
    lines = _text(path).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _separated(path: Path) -> list[str]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        rows = list(csv.DictReader(_text(path).splitlines(), delimiter=delimiter))
    except csv.Error as error:
        raise NoImages(f"Expected a table of file names in {path}, found: {error}.") from None
    columns = list(rows[0]) if rows else []
    _check_column(path, [str(column) for column in columns])
    return [cell_text((row[COLUMN] or "").strip()) for row in rows]


def _parquet(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    with readable_table(path):
        _check_column(path, pq.read_schema(path).names)
        names = pq.read_table(path, columns=[COLUMN])[COLUMN].to_pylist()
        return [str(name or "") for name in names]


def _check_column(path: Path, columns: list[str]) -> None:
    if COLUMN not in columns:
        raise NoImages(
            f"Expected a column {COLUMN!r} in {path}, found "
            f"{', '.join(columns) or 'no rows'}; rename the column that holds the paths."
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoImages(f"Expected a list in UTF-8, found {path}: {error}.") from None
