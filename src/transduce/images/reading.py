"""Bytes of an image: from a file, an archive, a row of a table, or behind a URL."""

from typing import IO

from transduce.images import tables
from transduce.images.decoding import MOST_BYTES, Unreadable
from transduce.images.remote import open_remote


def read_bytes(path: str, offset: int | None, size: int) -> bytes:
    """Return the bytes of a file, of an archive member at `offset`, or of a row of a table."""
    if size > MOST_BYTES:
        raise Unreadable("too large", f"{size:,} bytes; the limit is {MOST_BYTES:,}")
    try:
        if offset is not None and tables.is_table(path):
            return tables.read_row(path, offset)
        with _open(path) as file:
            if offset is None:
                data: bytes = file.read(MOST_BYTES + 1)
            else:
                file.seek(offset)
                data = file.read(size)
    except Unreadable:
        raise
    except FileNotFoundError:
        raise Unreadable("missing", "no such file") from None
    except PermissionError:
        raise Unreadable("no permission", "the file may not be read") from None
    except Exception as error:  # file systems behind URLs have errors of their own kinds
        raise Unreadable("cannot be read", f"{type(error).__name__}: {error}") from None
    if len(data) > MOST_BYTES:
        raise Unreadable("too large", f"more than {MOST_BYTES:,} bytes")
    if offset is not None and len(data) < size:
        raise Unreadable("truncated", "the archive ends inside this file")
    return data


def _open(path: str) -> IO[bytes]:
    if "://" in path:
        return open_remote(path)
    return open(path, "rb")  # noqa: PTH123 - called for each image; closed by the caller
