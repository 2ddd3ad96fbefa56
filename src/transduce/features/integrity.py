"""Whether the files of a store are as they were written, each hashed once per file and process."""

from functools import cache
from pathlib import Path

from transduce.errors import InvalidStore
from transduce.features.layout import MANIFEST
from transduce.machine.atomic import sha256_of

# Why an image has no row, where that may be otherwise the next time: it was away, the disk or the
# network failed, the machine was busy, an extra was not installed.
PASSING = ("missing", "cannot be", "no permission", "took too long", "crashed", "needs an extra")


def is_whole(path: Path, digest: str) -> bool:
    """Whether the file is there and has this SHA-256."""
    try:
        status = path.stat()
        return _digest(str(path), status.st_size, status.st_mtime_ns, status.st_ino) == digest
    except OSError:
        return False


@cache
def _digest(path: str, size: int, changed: int, number: int) -> str:
    """Return the hash of a file; one that was written again is read again."""
    return sha256_of(Path(path))


def check_whole(folder: Path, name: str, digest: str, source: str) -> None:
    """Raise `InvalidStore` if the file of a shard is not as it was written."""
    if is_whole(folder / name, digest):
        return
    found = "other bytes (its hash differs)" if (folder / name).is_file() else "no such file"
    if (folder / MANIFEST).is_file():
        mend = (
            f"the command that made the store makes this shard again: {embed_again(folder, source)}"
        )
    else:
        mend = "import or merge it again into a new folder"
    raise InvalidStore(f"Expected {folder / name} as it was written, found {found}; {mend}")


def embed_again(folder: Path, source: str) -> str:
    """Return the command that mends or finishes a store, as far as its files tell it."""
    return f"transduce embed {source} --out {folder}"


def may_pass(reason: str) -> bool:
    """Whether an image that was skipped for this reason is to be asked again."""
    return reason.startswith(PASSING)
