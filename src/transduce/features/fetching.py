"""Feature stores behind a URL (s3://, gs://, hf://, memory:// ...): fetched once, then files here.

A store is fetched whole into a folder of the cache, file by file. Each is checked by the hash that
the store's own `meta.json` has of it, and one that is there and whole is not fetched again: a
stopped download goes on where it was, and a store that has grown costs its new shards.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from transduce.encoders.hub import DownloadBar, no_bar
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
from transduce.machine.atomic import hold, replace_file

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


def fetch_store(url: str, bar: DownloadBar = no_bar) -> Path:
    """Return a folder with the files of the store behind a URL, fetching what is not there yet.

    `bar` shows the bytes that are fetched.

    Raises
    ------
    MissingExtra
        If the package that reads such URLs is not installed; it says which extra brings it.
    UnreachableSource
        If the URL cannot be read.
    InvalidStore
        If there is no complete feature store, or a file that is not as it was written.
    """
    remote, folder = _remote_store(url), cached_store(url)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        hold(file)
        meta = remote.meta(folder / NEW)
        if not meta.complete:
            raise InvalidStore(
                f"Expected a complete feature store, found an unfinished one in {url}; finish it "
                "with transduce embed, and copy it there once more."
            )
        digests = {n: d for n, d in _files(meta, url) if not is_whole(folder / n, d)}
        unhashed = [n for n in (SKIPPED, TEXTS) if n not in meta.files and remote.has(n)]
        size = remote.size(digests, meta) if digests else 0
        with bar(f"Fetching {url}", size) if size else no_bar("", 0) as advance:
            for name, digest in digests.items():
                remote.fetch(name, folder / name, digest, advance)
        for name in unhashed:
            remote.fetch(name, folder / name)
        (folder / NEW / META).replace(folder / META)
        (folder / NEW).rmdir()
    return folder


def read_remote_meta(url: str) -> Meta:
    """Return the `meta.json` of the store behind a URL; nothing else of it is read.

    Raises as `fetch_store`, but for unfinished stores.
    """
    with tempfile.TemporaryDirectory(prefix="transduce-") as folder:
        return _remote_store(url).meta(Path(folder))


@dataclass(frozen=True)
class Visit:
    """A store behind a URL, whose files come into a temporary folder when they are asked for."""

    folder: Path
    meta: Meta
    _remote: "_Remote"
    _advance: Callable[[int], None]

    @contextmanager
    def with_files(self, names: Iterable[str]) -> Iterator[None]:
        """Have these files in the folder while the block runs, as they are; absent ones stay so."""
        here = [self.folder / name for name in names if self._remote.has(name)]
        for path in here:
            name = path.relative_to(self.folder).as_posix()
            self._remote.fetch(name, path, advance=self._advance)
        try:
            yield
        finally:
            for path in here:
                path.unlink()


def visit_store(url: str, bar: DownloadBar = no_bar) -> AbstractContextManager[Visit]:
    """Return a store behind a URL as a context, to read every byte of it once and keep none.

    Raises as `fetch_store` if there is no store; what is wrong with its `meta.json` is raised when
    the context is entered.
    """
    return _visiting(_remote_store(url), url, bar)


@contextmanager
def _visiting(remote: "_Remote", url: str, bar: DownloadBar) -> Iterator[Visit]:
    with tempfile.TemporaryDirectory(prefix="transduce-") as folder:
        meta = remote.meta(Path(folder))
        names = [name for name, _ in _files(meta, url)]
        size = remote.size(names, meta) if names else 0
        with bar(f"Reading {url}", size) if size else no_bar("", 0) as advance:
            yield Visit(Path(folder), meta, remote, advance)


def _remote_store(url: str) -> "_Remote":
    """Return the store behind a URL; refused if there is none."""
    system, root = filesystem(url)
    remote = _Remote(system, root.rstrip("/"), url.rstrip("/"))
    if not remote.has(META):
        raise InvalidStore(
            f"Expected a feature store, found no {META} in {url}; make one with transduce embed, "
            "and copy its folder there. Features of other programs are read from files of this "
            "machine alone."
        )
    return remote


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

    def meta(self, folder: Path) -> Meta:
        """Fetch `meta.json` into a folder, and read it."""
        self.fetch(META, folder / META)
        try:
            return read_meta(folder)
        except InvalidStore as error:
            raise InvalidStore(str(error).replace(str(folder), self._url)) from None

    def size(self, names: Iterable[str], meta: Meta) -> int:
        """The bytes of some files; where they cannot be listed, about those of the embeddings."""
        try:
            listed = self._system.find(self._root, detail=True)
            return sum(int(listed[f"{self._root}/{name}"]["size"]) for name in names)
        except Exception:  # each file system has errors of its own kinds, and some list nothing
            return 2 * meta.identity.dimension * meta.rows

    def fetch(
        self,
        name: str,
        path: Path,
        digest: str | None = None,
        advance: Callable[[int], None] = lambda size: None,
    ) -> None:
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
                        advance(len(block))
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
