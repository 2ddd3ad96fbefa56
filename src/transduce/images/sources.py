"""Where images come from: a folder, a glob, a list, a table, a tar archive, a URL."""

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from transduce.errors import NoImages
from transduce.images.archives import is_archive, members
from transduce.images.entries import EXTENSIONS, Entry, Listing, is_hidden, is_image, local_entry
from transduce.images.lists import LISTS, listed
from transduce.images.remote_sources import find_remote
from transduce.images.tables import is_table, table_entries


def find_images(source: str) -> Listing:
    """List the images of `source` without opening them; raises `NoImages` if there are none."""
    listing = find_remote(source) if "://" in source else _find_local(source)
    if not listing.entries:
        others = f" among its {listing.ignored:,} files" if listing.ignored else ""
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
    files = [name for name in names if Path(name).is_file()]
    entries = [local_entry(name, Path(name)) for name in files if is_image(name)]
    return Listing(source, entries, len(files) - len(entries))


def _folder(source: str, folder: Path) -> Listing:
    entries, ignored = [], 0
    for file in _walk(folder, set()):
        if is_image(file.name):
            entries.append(local_entry(file.relative_to(folder).as_posix(), file))
        else:
            ignored += 1
    entries.sort(key=lambda entry: entry.key)
    if not entries:  # the shards of a dataset, perhaps
        for file in sorted(_walk(folder, set())):
            if is_table(file.name):
                rows = _rows(file, file.relative_to(folder).as_posix())
                entries += rows
                ignored -= bool(rows)
    return Listing(source, entries, ignored)


def _rows(file: Path, key: str) -> list[Entry]:
    # resolve() would follow links
    return table_entries(os.path.abspath(file), key, file.stat().st_mtime)  # noqa: PTH100


def _walk(folder: Path, above: set[str]) -> Iterator[Path]:
    """Yield all files below, also through links to folders, but not round in circles."""
    real = os.path.realpath(folder)
    if real in above:
        return
    with os.scandir(folder) as scan:
        children = [child for child in scan if not is_hidden(child.name)]
    for child in children:
        if child.is_dir():
            yield from _walk(Path(child.path), above | {real})
        elif child.is_file() or child.is_symlink():
            yield Path(child.path)


def _file(source: str, path: Path) -> Listing:
    if is_archive(path.name):
        return Listing(source, *members(path))
    if is_table(path.name) and (rows := _rows(path, path.name)):
        return Listing(source, rows)
    if path.suffix.lower() in LISTS:
        return Listing(source, listed(path))
    if is_image(path.name):
        return Listing(source, [local_entry(path.name, path)])
    raise NoImages(
        f"Expected a list ({', '.join(sorted(LISTS))}), a .tar or an image, found {source}."
    )
