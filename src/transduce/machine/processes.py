"""Worker processes end with the process that started them, however it ends.

A killed process cleans nothing up, and libraries of workers (joblib, Ray) leave theirs behind. So a
guard is started beside them: a tiny program that waits for the end of a pipe, which comes when we
end, and then ends every process that has our mark in its environment, or files open in a folder
that was named to it. Decoding processes need no guard: the kernel ends them (images.confinement).
"""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

MARK = "TRANSDUCE_FAMILY"
TRACKER = b"resource_tracker"  # of joblib: cleans up shared memory, then ends by itself
PATIENCE = 10.0  # seconds in which a process that is being born may still appear
QUIET = 1.0  # seconds without any, after which the guard ends

_guard: "subprocess.Popen[bytes] | None" = None


def end_with_us(folder: str = "") -> None:
    """Let processes that are started from now on end when this one does.

    `folder` names a folder in which they alone have files open, for those that overwrite their
    environment, as Ray's do.
    """
    global _guard
    if not os.path.isdir("/proc/self"):  # noqa: PTH112 - the guard reads Linux's list of processes
        return
    if _guard is None:
        os.environ[MARK] = secrets.token_hex(16)
        _guard = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, os.environ[MARK]],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us
        )
        _guard.returncode = 0  # it outlives us for a moment; no warning that it still runs
        os.register_at_fork(after_in_child=_forget)
    if folder and _guard.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            _guard.stdin.write(folder.encode() + b"\n")
            _guard.stdin.flush()


def _forget() -> None:
    """Close our end of the pipe: a copy of it in a child would keep the guard waiting."""
    if _guard is not None and _guard.stdin is not None:
        with contextlib.suppress(OSError):
            _guard.stdin.close()


def _watch(mark: str) -> None:
    """Wait for the end of the process that started us, then end its family."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent = os.getppid()  # it is about to end by itself, and has an exit code to give
    folders = [line.strip() for line in sys.stdin.buffer]
    start = last = time.monotonic()
    while time.monotonic() - last < QUIET and time.monotonic() - start < PATIENCE:
        for process in family(f"{MARK}={mark}".encode(), folders):
            if process == parent:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            last = time.monotonic()
        time.sleep(0.05)


def family(mark: bytes, folders: list[bytes]) -> Iterator[int]:
    """Yield the processes that have the mark, or files open in one of the folders."""
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):  # ended meanwhile, or somebody else's
                if _is_ours(f"/proc/{name}", mark, folders):
                    yield int(name)


def _is_ours(process: str, mark: bytes, folders: list[bytes]) -> bool:
    if TRACKER in _read(f"{process}/cmdline"):
        return False
    if mark in _read(f"{process}/environ"):
        return b") Z " not in _read(f"{process}/stat")  # a zombie has ended already
    if not folders:
        return False
    numbers = os.listdir(f"{process}/fd")  # noqa: PTH208
    files = [os.readlink(f"{process}/fd/{number}").encode() for number in numbers]  # noqa: PTH115
    return any(file.startswith(folder + b"/") for file in files for folder in folders)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - a Path of each file of /proc is slow
        return file.read()


if __name__ == "__main__":
    _watch(sys.argv[1])
