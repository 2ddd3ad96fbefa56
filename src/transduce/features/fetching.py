"""Feature stores behind a URL (s3://, gs://, hf://, memory:// ...): fetched once, then files here.

A store is fetched whole into a folder of the cache, file by file. Each is checked by the hash that
the store's own `meta.json` has of it, and one that is there and whole is not fetched again: a
stopped download goes on where it was, and a store that has grown costs its new shards.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from transduce.encoders.precomputed import TEXTS
from transduce.errors import InvalidStore, TransduceError, UnreachableSource
from transduce.features.layout import (
    META,
    SKIPPED,
    Meta,
    embeddings_name,
    is_whole,
    metadata_name,
    read_meta,
)
from transduce.images.remote import filesystem
from transduce.machine.atomic import replace_file
from transduce.machine.locks import hold

CACHE = "TRANSDUCE_CACHE"  # in the environment: where fetched stores are kept
NEW = ".new"  # the meta.json of the store as it is now, until all of its files are here
LOCK = ".lock"  # of whoever fetches into the folder; others wait
COPIED_AT_ONCE = 1 << 22


def cached_store(url: str) -> Path:
    """Return the folder that the store behind a URL is fetched into."""
    cache = os.environ.get(CACHE)
    if not cache:
        cache = str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "transduce"))
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in url.rstrip("/").split("/")[-1])
    digest = hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:12]
    return Path(cache).expanduser() / "stores" / f"{name}-{digest}"


def fetch_store(url: str) -> Path:
    """Return a folder with the files of the store behind a URL, fetching what is not there yet.

    Raises
    ------
    MissingExtra
        If the package that reads such URLs is not installed; it says which extra brings it.
    UnreachableSource
        If the URL cannot be read.
    InvalidStore
        If there is no complete feature store, or a file that is not as it was written.
    """
    system, root = filesystem(url)
    folder = cached_store(url)
    remote = _Remote(system, root.rstrip("/"), url.rstrip("/"))
    if not remote.has(META):
        raise InvalidStore(
            f"Expected a feature store, found no {META} in {url}; make one with transduce embed, "
            "and copy its folder there. Features of other programs are read from files of this "
            "machine alone."
        )
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        hold(file)
        remote.fetch(META, folder / NEW / META)
        meta = read_meta(folder / NEW)
        if not meta.complete:
            raise InvalidStore(
                f"Expected a complete feature store, found an unfinished one in {url}; finish it "
                "with transduce embed, and copy it there once more."
            )
        for name, digest in _files(meta, url):
            if not is_whole(folder / name, digest):
                remote.fetch(name, folder / name, digest)
        for name in (SKIPPED, TEXTS):  # of stores that have no hashes of them
            if name not in meta.files and remote.has(name):
                remote.fetch(name, folder / name)
        (folder / NEW / META).replace(folder / META)
        (folder / NEW).rmdir()
    return folder


def _files(meta: Meta, url: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the hash of every file that a store says it has."""
    for name in meta.files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
            raise InvalidStore(
                f"Expected files inside the feature store {url}, found {name!r} among its names; "
                "do not trust it."
            )
    for shard in meta.shards:
        yield embeddings_name(shard.index), shard.embeddings_sha256
        yield metadata_name(shard.index), shard.metadata_sha256
    yield from meta.files.items()


class _Remote:
    """The files of a folder in one of fsspec's file systems."""

    def __init__(self, system: Any, root: str, url: str) -> None:  # noqa: ANN401 - fsspec is untyped
        self._system, self._root, self._url = system, root, url

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        try:
            return bool(self._system.isfile(f"{self._root}/{name}"))
        except Exception as error:  # each file system has errors of its own kinds
            raise self._unreadable(name, error) from error

    def fetch(self, name: str, path: Path, digest: str | None = None) -> None:
        """Copy a file to `path`, whole and as it was written or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)

        def write(temporary: Path) -> None:
            found = hashlib.sha256()
            try:
                with (
                    self._system.open(f"{self._root}/{name}", "rb") as there,
                    temporary.open("wb") as here,
                ):
                    while block := there.read(COPIED_AT_ONCE):
                        found.update(block)
                        here.write(block)
            except Exception as error:
                if isinstance(error, TransduceError):
                    raise
                raise self._unreadable(name, error) from error
            if digest is not None and found.hexdigest() != digest:
                raise InvalidStore(
                    f"Expected {self._url}/{name} as it was written, found other bytes (its hash "
                    "differs); copy the store there once more."
                )

        replace_file(path, write)

    def _unreadable(self, name: str, error: Exception) -> UnreachableSource:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return UnreachableSource(
            f"Expected {self._url}/{name} to be readable, found {type(error).__name__}: {reason}; "
            "check the address, the network and your permission."
        )
