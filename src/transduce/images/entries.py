"""One image of a source, and the list of all of them."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from transduce.images.kinds import RAW_PROBLEM, is_raw


@dataclass(frozen=True, slots=True)
class Entry:
    """One image: a file, or a part of an archive or table."""

    key: str  # how the user knows it: the path inside the folder, list or archive
    path: str  # absolute path or URL of the file or of the archive
    size: int = -1  # in bytes; -1 when the source does not tell
    mtime: float = 0.0  # seconds; 0 when the source does not tell
    offset: int | None = None  # where it starts inside an archive; its row in a table
    problem: str = ""  # known when it was listed, such as "missing"


@dataclass(frozen=True, slots=True)
class Listing:
    """The images of a source, in the order in which they will be embedded."""

    source: str
    entries: list[Entry]
    ignored: int = 0  # files of a folder or archive that are no images by their name
    videos: int = 0  # of these


def local_entry(key: str, file: Path) -> Entry:
    """Return the entry of a file on this machine, with its problem if it has one already."""
    path = os.path.abspath(file)  # noqa: PTH100 - resolve() would follow links
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return Entry(_printable(key), _printable(path), problem="name is not UTF-8")
    if "\0" in path:
        return Entry(key, path, problem="name is not a path")
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return Entry(key, path, problem="missing")
    except OSError as error:
        return Entry(key, path, problem=f"cannot be read ({error.strerror})")
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for ever
        return Entry(key, path, problem="not a file")
    problem = RAW_PROBLEM if is_raw(path) else ""
    return Entry(key, path, status.st_size, status.st_mtime, problem=problem)


def local_folder(key: str, folder: str, problem: str) -> Entry:
    """Return the entry that stands for a folder whose images are not known."""
    path = os.path.abspath(folder)  # noqa: PTH100 - resolve() would follow links
    return Entry(_printable(key), _printable(path), problem=problem)


def _printable(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")
