"""Take a folder out of an archive: files only, none outside it, all of them or nothing."""

import errno
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from transduce.errors import InvalidDataset, TransduceError

Member = tuple[PurePosixPath, IO[bytes]]

# Four times the largest of the benchmark, ImageNet's 1.3 million files in 148 GB.
MOST_FILES = 5_000_000
MOST_BYTES = 600 * 10**9
BLOCK = 1 << 20
OF_THE_DISK = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE)


def unpack(archive: Path, takes: tuple[str, ...], target: Path) -> int:
    """Make the folder `takes` of the archive the folder `target`; return its number of files.

    All names of `takes` but the last are archives, each inside the one before.
    """
    refuse_nonempty(target)
    if target.exists():
        target.rmdir()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        count = 0
        for step in takes:
            count = _extract(archive, step, temporary)
            archive = temporary / step
        archive.rename(target)
    except (
        tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError,
        NotImplementedError, RuntimeError, ValueError,
    ) as error:  # fmt: skip
        if isinstance(error, TransduceError) or getattr(error, "errno", 0) in OF_THE_DISK:
            raise
        reason = " ".join(str(error).split(":")[0].split())  # tarfile adds a list of its attempts
        raise InvalidDataset(
            f"Expected a whole archive in {archive}, found {type(error).__name__} ({reason}); "
            "delete it and get it again."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return count


def refuse_nonempty(path: Path) -> None:
    """Raise if `path` exists and is not an empty folder."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InvalidDataset(
            f"Expected nothing or an empty folder at {path}, found something; move it away."
        )


def _extract(archive: Path, wanted: str, folder: Path) -> int:
    """Write the wanted file, or the files below the wanted folder; return how many."""
    count, seen, room = 0, set(), MOST_BYTES
    for path, content in _members(archive):
        seen.add(path.parts[0])
        if not path.is_relative_to(wanted):
            continue
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        with content, copy.open("wb") as file:
            while block := content.read(BLOCK):
                room -= len(block)
                if room < 0 or count >= MOST_FILES:
                    raise InvalidDataset(
                        f"Expected at most {MOST_FILES:,} files and {MOST_BYTES:,} bytes in "
                        f"{archive.name}, found more; do not trust it."
                    )
                file.write(block)
        count += 1
    if not count:
        raise InvalidDataset(
            f"Expected {wanted} in {archive.name}, found only {', '.join(sorted(seen)[:5])}; is it "
            "another archive of that name?"
        )
    return count


def _members(archive: Path) -> Iterator[Member]:
    """Yield the regular files of a tar or zip; a dataset has no links or devices."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                if not entry.is_dir():
                    yield _inside(entry.filename, archive), opened.open(entry)
        return
    with tarfile.open(archive) as tape:
        for member in tape:
            content = tape.extractfile(member) if member.isfile() else None
            if content is not None:
                yield _inside(member.name, archive), content


def _inside(name: str, archive: Path) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise InvalidDataset(
            f"Expected files below one folder in {archive.name}, found {name!r}; do not trust it."
        )
    return path
