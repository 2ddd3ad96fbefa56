"""Images inside tar archives (webdataset): listed once, then read by their offset."""

import tarfile
from pathlib import Path
from typing import IO

from transduce.errors import NoImages
from transduce.images.entries import Entry, is_hidden, is_image

COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


def is_archive(name: str) -> bool:
    """Whether a file of this name is a tar archive, compressed or not."""
    return name.lower().endswith((".tar", *COMPRESSED))


def members(path: Path) -> tuple[list[Entry], int]:
    """Return the entries of a local archive, and how many other files it holds."""
    if path.name.lower().endswith(COMPRESSED):
        raise NoImages(
            f"Expected a plain .tar, found the compressed {path}; unpack it or decompress it "
            "(gunzip): images hardly shrink, and a plain archive can be read at any offset."
        )
    with path.open("rb") as file:
        return members_of(file, str(path.absolute()), path.stat().st_mtime)


def members_of(file: IO[bytes], path: str, mtime: float) -> tuple[list[Entry], int]:
    """Return the entries of an open archive, and how many other files it holds."""
    entries, ignored = [], 0
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                if not member.isfile():
                    continue
                if is_image(member.name) and not is_hidden(member.name.rpartition("/")[2]):
                    offset = member.offset_data
                    entries.append(Entry(member.name, path, member.size, mtime, offset))
                else:
                    ignored += 1
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise NoImages(
            f"Expected a whole tar archive, found {path} damaged after {len(entries):,} "
            f"images ({error}); download it again."
        ) from None
    return entries, ignored
