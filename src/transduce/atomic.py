"""Files that are whole or absent: written beside, flushed to the disk, then renamed."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

TEMPORARY = ".tmp"


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file, then put it at `path` in one step.

    The temporary file has one fixed name, so that a killed run leaves at most one and the
    next run writes over it.
    """
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    write(temporary)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
    _flush_folder(path.parent)


def replace_text(path: Path, text: str) -> None:
    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    replace_file(path, write)


def replace_json(path: Path, value: object) -> None:
    replace_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can do that."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
