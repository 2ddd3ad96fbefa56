"""One review server for a run at a time."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from transduce.errors import NotSaved, RunInUse
from transduce.machine.atomic import hold

LOCK = ".review.lock"


@contextlib.contextmanager
def only_review(folder: Path) -> Iterator[None]:
    """Keep a second review out of the run directory, until the end of the block or the process.

    The file holds the number of the process. Where the system has file locks it frees them
    however the holder ends; where it has none, the lock of a process that is gone is broken.

    Raises
    ------
    RunInUse
        If another process reviews this run.
    """
    path = folder / LOCK
    try:
        file = _taken(path)
    except OSError as error:
        if isinstance(error, RunInUse):
            raise
        raise NotSaved(
            f"Expected to save answers in {folder}, found {error.strerror}; check its permissions."
        ) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # before it is freed, so that the next one makes a file of its own
        file.close()


def _taken(path: Path) -> IO[str]:
    """Return the lock file, held and with our number in it."""
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            _hold(file, path)
            if _still_there(file, path):
                file.truncate(0)
                file.write(f"{os.getpid()}\n")
                file.flush()
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its holder removed it between our two steps: try the new one


def _hold(file: IO[str], path: Path) -> None:
    file.seek(0)
    holder = file.read().strip()
    refusal = RunInUse(
        f"Expected {path.parent} for this review alone, found another review of it"
        f"{f' (process {holder})' if holder else ''}; go on in its page, or end it with Ctrl-C."
    )
    try:
        locked = hold(file, wait=False)
    except BlockingIOError:
        raise refusal from None
    # Where there are no locks the number must do.
    if not locked and holder.isdigit() and int(holder) != os.getpid() and _alive(int(holder)):
        raise refusal


def _still_there(file: IO[str], path: Path) -> bool:
    try:
        return os.name == "nt" or os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _alive(process: int) -> bool:
    if os.name == "nt":  # there os.kill would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
