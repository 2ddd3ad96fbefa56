"""Where images come from: a folder, a glob, a list, a table, a tar archive, a URL."""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from transduce.errors import NoImages, counted
from transduce.images.archives import is_archive, members
from transduce.images.entries import (
    EXTENSIONS,
    RAW_PROBLEM,
    Entry,
    Listing,
    is_companion,
    is_hidden,
    is_image,
    is_raw,
    is_table,
    is_video,
    local_entry,
    local_folder,
)
from transduce.images.lists import LISTS, listed
from transduce.images.remote_sources import find_remote
from transduce.images.tables import table_entries


def find_images(source: str) -> Listing:
    """List the images of `source` without opening them; raises `NoImages` if there are none."""
    listing = find_remote(source) if "://" in source else _find_local(source)
    if listing.entries and all(entry.problem == RAW_PROBLEM for entry in listing.entries):
        raise NoImages(
            f"Expected images, found only {counted(len(listing.entries), 'RAW photo')} in "
            f"{source}; export them as JPEG with the program of the camera first."
        )
    if not listing.entries:
        others = f" among its {counted(listing.ignored, 'file')}" if listing.ignored else ""
        if listing.videos:
            others += f" ({counted(listing.videos, 'video')}: take frames out of them first)"
        raise NoImages(
            f"Expected images ({', '.join(sorted(EXTENSIONS)[:4])} ... "
            f"{len(EXTENSIONS)} kinds), found none in {source}{others}; "
            "give a folder, a quoted glob, a list (.txt, .csv, .parquet) or a .tar."
        )
    return listing


def _find_local(source: str) -> Listing:
    path = Path(source).expanduser()
    if path.is_dir():
        return _folder(source, path)
    if path.is_file():
        return _file(source, path)
    if glob.has_magic(source):
        return _glob(source, str(path))
    raise NoImages(
        f"Expected a folder, a glob, a list or an archive of images, found nothing at {source}; "
        "check the spelling."
    )


def _glob(source: str, pattern: str) -> Listing:
    names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - takes absolute patterns
    files = _Sorted()
    for name in names:
        if Path(name).is_file():
            files.add(name, Path(name))
    return files.listing(source)


@dataclass(slots=True)
class _Sorted:
    """Files by what their names say of them."""

    entries: list[Entry] = field(default_factory=list)
    tables: list[tuple[str, Path]] = field(default_factory=list)
    raw: list[tuple[str, Path]] = field(default_factory=list)
    ignored: int = 0
    videos: int = 0

    def add(self, key: str, file: Path) -> None:
        if is_image(key):
            self.entries.append(local_entry(key, file))
        elif is_raw(key):
            self.raw.append((key, file))
        elif not is_companion(key):
            self.ignored += 1
            self.videos += is_video(key)
            if is_table(key):
                self.tables.append((key, file))

    def listing(self, source: str) -> Listing:
        # A camera may keep each photo twice, RAW and JPEG: the JPEG is enough.
        read = {PurePosixPath(entry.key).with_suffix("") for entry in self.entries}
        self.entries += [
            local_entry(key, file)
            for key, file in self.raw
            if PurePosixPath(key).with_suffix("") not in read
        ]
        if all(entry.problem for entry in self.entries):  # the shards of a dataset, perhaps
            for key, file in sorted(self.tables):
                rows = _rows(file, key)
                self.entries += rows
                self.ignored -= bool(rows)
        else:
            self.entries.sort(key=lambda entry: entry.key)
        return Listing(source, self.entries, self.ignored, self.videos)


def _folder(source: str, folder: Path) -> Listing:
    files = _Sorted()
    for name, problem in _walk(folder):
        key = Path(name).relative_to(folder).as_posix()
        if problem:
            files.entries.append(local_folder(f"{key}/", name, problem))
        else:
            files.add(key, Path(name))
    return files.listing(source)


def _rows(file: Path, key: str) -> list[Entry]:
    # resolve() would follow links
    return table_entries(os.path.abspath(file), key, file.stat().st_mtime)  # noqa: PTH100


def _walk(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (path, "") of all files below, and (path, problem) of folders that cannot be listed.

    Links to folders are followed, but not round in circles. No recursion: folders may be nested
    as deep as the file system takes them.
    """
    todo: list[tuple[str, frozenset[tuple[int, int]]]] = [(os.fspath(folder), frozenset())]
    while todo:
        path, above = todo.pop()
        try:
            status = os.stat(path)  # noqa: PTH116 - a Path for each folder takes as long
            here = (status.st_dev, status.st_ino)
            if here in above:
                continue
            with os.scandir(path) as scan:
                children = [child for child in scan if not is_hidden(child.name)]
        except OSError as error:
            if not above:
                raise  # the source itself
            yield path, f"cannot be listed ({error.strerror})"
            continue
        for child in children:
            if _is_folder(child):
                todo.append((child.path, above | {here}))
            elif child.is_symlink() or child.is_file():
                yield child.path, ""


def _is_folder(child: "os.DirEntry[str]") -> bool:
    try:
        return child.is_dir()
    except OSError:  # a link to itself, say; what it is shows when it is read
        return False


def _file(source: str, path: Path) -> Listing:
    if is_archive(path.name):
        return Listing(source, *members(path))
    if is_table(path.name) and (rows := _rows(path, path.name)):
        return Listing(source, rows)
    if path.suffix.lower() in LISTS:
        return Listing(source, listed(path))
    if is_image(path.name) or is_raw(path.name):
        return Listing(source, [local_entry(path.name, path)])
    raise NoImages(
        f"Expected a list ({', '.join(sorted(LISTS))}), a .tar or an image, found {source}."
    )
