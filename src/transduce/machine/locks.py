"""Locks of open files, which the system frees however their holder ends."""

from typing import IO


def hold(file: IO[str] | IO[bytes], *, wait: bool = True) -> bool:
    """Hold the lock of an open file until it is closed; return whether there is such a lock.

    Windows and some network file systems have none.

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
