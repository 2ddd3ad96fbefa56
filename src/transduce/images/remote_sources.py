"""Images behind a URL: a folder, a glob, an archive or tables, wherever fsspec can read."""

import glob
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from transduce.errors import NoImages, TransduceError, UnreachableSource
from transduce.images.archives import is_archive, members_of
from transduce.images.entries import Entry, Listing, is_hidden, is_image, is_table
from transduce.images.remote import filesystem
from transduce.images.tables import table_entries


def find_remote(url: str) -> Listing:
    """List the images at a URL; raises `UnreachableSource` if it cannot be read."""
    system, path = filesystem(url)
    try:
        if glob.has_magic(path):
            infos = system.glob(path, detail=True)
            root = ""
        elif is_archive(path):
            return _archive(url, system, path)
        elif is_table(path):
            infos = {path: system.info(path)}
            root = path.rpartition("/")[0] + "/"
        else:
            infos = system.find(path, detail=True)
            root = path.rstrip("/") + "/"
    except Exception as error:  # each file system has errors of its own kinds
        if isinstance(error, TransduceError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreachableSource(
            f"Expected {url} to be readable, found {type(error).__name__}: {reason}; check the "
            "address, the network and your permission."
        ) from error
    files = [(name, info) for name, info in sorted(infos.items()) if info["type"] == "file"]
    entries: list[Entry] = []
    ignored = 0
    for name, info in files:
        key = name.removeprefix(root)
        if is_image(name) and not any(is_hidden(part) for part in key.split("/")):
            entries.append(_entry(key, system.unstrip_protocol(name), info))
        else:
            ignored += 1
    if not entries:  # as the Hugging Face hub keeps datasets
        for name, info in files:
            if is_table(name):
                address = system.unstrip_protocol(name)
                rows = table_entries(address, name.removeprefix(root), _mtime(info))
                entries += rows
                ignored -= bool(rows)
    return Listing(url, entries, ignored)


def _archive(url: str, system: Any, path: str) -> Listing:  # noqa: ANN401 - fsspec is untyped
    if not path.endswith(".tar"):
        raise NoImages(f"Expected a plain .tar, found the compressed {url}; decompress it.")
    info = system.info(path)
    with system.open(path, "rb") as file:
        return Listing(url, *members_of(file, system.unstrip_protocol(path), _mtime(info)))


def _entry(key: str, url: str, info: Mapping[str, Any]) -> Entry:
    size = info.get("size")
    return Entry(key, url, -1 if size is None else int(size), _mtime(info))


def _mtime(info: Mapping[str, Any]) -> float:
    """Return the time of change, under whichever name the file system gives it."""
    for name in ("mtime", "LastModified", "last_modified", "created", "modified"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return 0.0
