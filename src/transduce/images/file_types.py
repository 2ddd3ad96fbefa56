"""Which files are images, judged by their name alone."""

from pathlib import PurePosixPath

EXTENSIONS = frozenset(
    {".apng", ".avif", ".bmp", ".dib", ".gif", ".heic", ".heif", ".ico", ".j2k", ".jfif", ".jp2",
     ".jpe", ".jpeg", ".jpg", ".jpx", ".pbm", ".pcx", ".pgm", ".png", ".pnm", ".ppm", ".qoi",
     ".sgi", ".tga", ".tif", ".tiff", ".webp"}
)  # fmt: skip


def is_image(name: str) -> bool:
    """Whether the name ends as that of an image."""
    return PurePosixPath(name).suffix.lower() in EXTENSIONS


def is_container(name: str) -> bool:
    """Whether an image at this path is a part of the file, not the file."""
    return name.lower().endswith((".tar", ".parquet"))


def is_hidden(name: str) -> bool:
    """Whether the name is that of a hidden file or folder."""
    return name.startswith(".")
