"""Files that are whole or absent (written beside, flushed, renamed), typed values, and locks."""

import contextlib
import csv
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
import numpy as np

from transduce.errors import InvalidFile

TEMPORARY = ".tmp"
FORMULA = re.compile(r"'*[=+\-@\t\r\n]")  # how a formula begins in some spreadsheet
FIRST = frozenset("'=+-@\t\r\n")  # its first characters; few cells need the expression
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
Value = TypeVar("Value")


def to_plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return a dataclass (or a container of them) as dicts, lists, texts and numbers."""
    return msgspec.to_builtins(value)


def from_plain(
    kind: type[Value],
    data: object,
    where: str,
    *,
    refuse_unknown: bool = False,
    error: type[Exception] = InvalidFile,
) -> Value:
    """Return `data` (dicts, lists, texts, numbers) as a value of the dataclass `kind`.

    Parameters
    ----------
    kind : type
        A dataclass whose annotations say what is expected; fields with a default may be missing,
        so that files written before a field existed stay readable.
    data : object
        What a JSON or TOML parser returned.
    where : str
        The file or key that `data` comes from, for the message.
    refuse_unknown : bool
        Refuse names that are not fields, for what people write by hand; by default they are
        ignored, so that files written by later versions stay readable.
    error : type
        The exception to raise.

    Raises
    ------
    InvalidFile
        Or `error`, with the field that is wrong, what was expected and what was found.
    """
    if refuse_unknown and isinstance(data, Mapping) and dataclasses.is_dataclass(kind):
        known = [field.name for field in dataclasses.fields(kind)]
        for name in data:
            if name not in known:
                near = get_close_matches(str(name), known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise error(f"Expected only {', '.join(known)} in {where}, found {name!r}{hint}")
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as problem:
        reason = str(problem).replace(", got", ", found").replace(" - at `$.", " at `")
        raise error(f"Expected a valid {where}, found trouble: {reason.rstrip('.')}.") from None


def read_json(path: Path, kind: type[Value], *, error: type[Exception] = InvalidFile) -> Value:
    """Return the JSON file at `path` as a value of the dataclass `kind`; see `from_plain`."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise error(f"Expected a file at {path}, found none; check the path.") from None
    except (OSError, ValueError) as problem:
        raise error(f"Expected JSON in {path}, found {problem}.") from None
    return from_plain(kind, data, str(path), error=error)


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file, then put it at `path` in one step.

    The temporary file has one fixed name, so that a killed run leaves at most one and the
    next run writes over it. Where `write` fails, on a full disk say, nothing is left.
    """
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = str(path)  # a full disk does not say for which file
        raise
    _flush_folder(path.parent)


def replace_text(path: Path, text: str) -> None:
    """Write `text` (UTF-8) to `path` in one step."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    replace_file(path, write)


def replace_json(path: Path, value: object) -> None:
    """Write `value`, a dataclass or plain data, to `path` as JSON in one step."""
    replace_text(path, json.dumps(to_plain(value), indent=1, ensure_ascii=False) + "\n")


def replace_csv(path: Path, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a header and rows of cells to `path` as CSV in one step; None is an empty cell.

    Texts that a spreadsheet would run are written as `safe_cell` says.
    """

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([safe_cell(cell) for cell in row] for row in rows)

    replace_file(path, write)


def safe_cell(cell: object) -> object:
    """Return a cell of a CSV that a spreadsheet shows and never runs.

    A text that begins with =, +, - or @ is a formula to a spreadsheet, wherever the file or class
    name came from: it gets an apostrophe in front. Numbers stay numbers; `cell_text` undoes it.
    """
    if not isinstance(cell, str) or cell[:1] not in FIRST:
        return cell
    if not FORMULA.match(cell) or NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def cell_text(cell: str) -> str:
    """Return the text that `safe_cell` was given."""
    return cell[1:] if cell[:1] == "'" and FORMULA.match(cell, 1) else cell


def replace_array(path: Path, array: np.ndarray) -> None:
    """Write `array` to `path` as .npy in one step, and the folder where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:  # np.save would add .npy to the temporary name
            np.save(file, array, allow_pickle=False)

    replace_file(path, write)


def rename_folder(hidden: Path, folder: Path) -> None:
    """Give a folder that is written whole its final name in one step."""
    hidden.rename(folder)
    _flush_folder(folder.parent)


def reserve(path: Path) -> None:
    """Give a file its space on the disk; a mapped hole on a full disk ends the process."""
    if hasattr(os, "posix_fallocate"):  # not on macOS and Windows
        with path.open("r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
            except OSError as error:
                error.filename = str(path)
                raise


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
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


def hold(file: IO[str] | IO[bytes], *, wait: bool = True) -> bool:
    """Hold the lock of an open file until it is closed; return whether there is such a lock.

    The system frees the lock however its holder ends. Windows and some network file systems have
    none.

    Parameters
    ----------
    file : file object
        The open file.
    wait : bool
        Whether to wait for another process that holds it.

    Raises
    ------
    BlockingIOError
        If another process holds it and `wait` is false.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except (ImportError, OSError):
        return False
    return True
