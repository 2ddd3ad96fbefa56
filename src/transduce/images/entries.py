"""One image of a source: its entry, what its name says of it, and why it cannot be read."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

EXTENSIONS = frozenset(
    {".apng", ".avif", ".bmp", ".dib", ".gif", ".heic", ".heif", ".ico", ".j2k", ".jfif", ".jp2",
     ".jpe", ".jpeg", ".jpg", ".jpx", ".pbm", ".pcx", ".pgm", ".png", ".pnm", ".ppm", ".qoi",
     ".sgi", ".tga", ".tif", ".tiff", ".webp"}
)  # fmt: skip
RAW = frozenset(
    {".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".iiq", ".kdc", ".mef", ".mos",
     ".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw",
     ".x3f"}
)  # fmt: skip
VIDEOS = frozenset(
    {".3g2", ".3gp", ".avi", ".flv", ".insv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg",
     ".mpg", ".mts", ".ogv", ".webm", ".wmv"}
)  # fmt: skip
RAW_PROBLEM = "RAW photo, not read: export it as JPEG"

# What phones, cameras, Google Takeout and file managers put beside images; nobody misses it.
_COMPANIONS = frozenset({".aae", ".ini", ".json", ".lrv", ".thm", ".xmp"})
_COMPANION_NAMES = frozenset({"thumbs.db", "desktop.ini", "ehthumbs.db", "icon\r"})
_COMPANION_FOLDERS = frozenset({"@eadir", "__macosx", "$recycle.bin", "#recycle"})


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


class Unreadable(Exception):
    """A file without a readable image: the reason in a few fixed words, and the detail."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


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


def is_image(name: str) -> bool:
    """Whether the name ends as that of an image."""
    return _ending(name) in EXTENSIONS


def is_raw(name: str) -> bool:
    """Whether the name ends as that of a RAW photo, which is not decoded."""
    return _ending(name) in RAW


def is_video(name: str) -> bool:
    """Whether the name ends as that of a video."""
    return _ending(name) in VIDEOS


def is_companion(name: str) -> bool:
    """Whether a file of this name only describes images or a folder of them, and is not counted."""
    last = name.rpartition("/")[2].lower()
    return _ending(last) in _COMPANIONS or last in _COMPANION_NAMES


def is_hidden(name: str) -> bool:
    """Whether the name is that of a hidden file, or of a folder that a system made for itself."""
    return name.startswith(".") or name.lower() in _COMPANION_FOLDERS


def is_container(name: str) -> bool:
    """Whether the path is that of a file with many images in it: an archive or a table."""
    return name.lower().endswith((".tar", ".parquet"))


def is_table(name: str) -> bool:
    """Whether a file of this name is a parquet table."""
    return name.lower().endswith(".parquet")


def is_url(address: str | os.PathLike[str]) -> bool:
    """Whether this is the address of something that fsspec is to read, and no path."""
    return isinstance(address, str) and "://" in address


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _printable(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")
