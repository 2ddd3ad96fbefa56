"""What the name of a file says of it: an image, a RAW photo, a video, or what lies beside them."""

from pathlib import PurePosixPath

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
    """Whether a file of this name describes images or a folder of them: ignored without a word."""
    last = name.rpartition("/")[2].lower()
    return _ending(last) in _COMPANIONS or last in _COMPANION_NAMES


def is_hidden(name: str) -> bool:
    """Whether the name is that of a file or folder that its owner does not see as theirs."""
    return name.startswith(".") or name.lower() in _COMPANION_FOLDERS


def is_container(name: str) -> bool:
    """Whether an image at this path is a part of the file, not the file."""
    return name.lower().endswith((".tar", ".parquet"))


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix.lower()
