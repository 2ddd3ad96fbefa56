"""Where pictures come from: a folder, a glob, a list, a table, a tar archive, a URL."""

import glob
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transduce.errors import NoImages
from transduce.images.archives import is_archive, members
from transduce.images.file_types import EXTENSIONS, is_hidden, is_picture
from transduce.images.manifest import Entry
from transduce.images.tables import is_table, rows_of

LISTS = frozenset({".txt", ".csv", ".tsv", ".parquet"})


@dataclass(frozen=True, slots=True)
class Found:
    """The pictures of a source, in the order in which they will be embedded."""

    source: str
    entries: list[Entry]
    ignored: int = 0  # files of a folder or archive that are no pictures by their name


def find_images(source: str) -> Found:
    """List the pictures of `source`; nothing is decoded yet."""
    if "://" in source:
        from transduce.images.remote_sources import find_remote

        found = find_remote(source)
    else:
        found = _find_local(source)
    if not found.entries:
        others = f" among its {found.ignored:,} files" if found.ignored else ""
        raise NoImages(
            f"Expected pictures ({', '.join(sorted(EXTENSIONS)[:4])} ... "
            f"{len(EXTENSIONS)} kinds), found none in {source}{others}; "
            "give a folder, a quoted glob, a list (.txt, .csv, .parquet) or a .tar."
        )
    return found


def _find_local(source: str) -> Found:
    path = Path(source).expanduser()
    if path.is_dir():
        return _folder(source, path)
    if path.is_file():
        return _file(source, path)
    if glob.has_magic(source):
        return _glob(source, str(path))
    raise NoImages(
        f"Expected a folder, a glob, a list or an archive of pictures, found nothing at {source}; "
        "check the spelling."
    )


def _glob(source: str, pattern: str) -> Found:
    names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - takes absolute patterns
    files = [name for name in names if Path(name).is_file()]
    entries = [local_entry(name, Path(name)) for name in files if is_picture(name)]
    return Found(source, entries, len(files) - len(entries))


def _folder(source: str, folder: Path) -> Found:
    entries, ignored = [], 0
    for file in _walk(folder, set()):
        if is_picture(file.name):
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
    return Found(source, entries, ignored)


def _rows(file: Path, key: str) -> list[Entry]:
    return rows_of(os.path.abspath(file), key, file.stat().st_mtime)  # noqa: PTH100 - as below


def _walk(folder: Path, above: set[str]) -> Iterator[Path]:
    """All files below, also through links to folders, but not round in circles."""
    real = os.path.realpath(folder)
    if real in above:
        return
    with os.scandir(folder) as listing:
        children = [child for child in listing if not is_hidden(child.name)]
    for child in children:
        if child.is_dir():
            yield from _walk(Path(child.path), above | {real})
        elif child.is_file() or child.is_symlink():
            yield Path(child.path)


def _file(source: str, path: Path) -> Found:
    if is_archive(path.name):
        return Found(source, *members(path))
    if is_table(path.name) and (rows := _rows(path, path.name)):
        return Found(source, rows)
    if path.suffix.lower() in LISTS:
        from transduce.images.lists import listed

        return Found(source, listed(path))
    if is_picture(path.name):
        return Found(source, [local_entry(path.name, path)])
    raise NoImages(
        f"Expected a list ({', '.join(sorted(LISTS))}), a .tar or a picture, found {source}."
    )


def local_entry(key: str, file: Path) -> Entry:
    """The entry of a file on this machine, with its problem if there is one already."""
    path = os.path.abspath(file)  # noqa: PTH100 - resolve() would follow links
    if not _is_utf8(path):
        return Entry(_printable(key), _printable(path), problem="name is not UTF-8")
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return Entry(key, path, problem="missing")
    except OSError as error:
        return Entry(key, path, problem=f"cannot be read ({error.strerror})")
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for ever
        return Entry(key, path, problem="not a file")
    return Entry(key, path, status.st_size, status.st_mtime)


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _printable(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")
