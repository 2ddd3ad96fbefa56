"""One decoding process, spoken to by one thread, with a limit on every wait."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from jaxtyping import Float32

from transduce.errors import WorkerFailed
from transduce.images.decoding import Decoding, Unreadable
from transduce.images.manifest import Entry

START_LIMIT = 120.0  # seconds for a process to start, on the busiest of machines


@dataclass(frozen=True, slots=True)
class Readable:
    """What is known of a decoded picture; its pixels are in the batch."""

    width: int
    height: int
    sha256: str
    converted: str


class DecodingProcess:
    """One decoding process, spoken to by one thread."""

    def __init__(self, how: Decoding) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "transduce.images.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _import_path()},
            start_new_session=True,  # Ctrl-C is for the parent, which then ends us in order
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._requests, self._answers = self._popen.stdin, self._popen.stdout
        self.ended = self.crashed = False
        with _Watch(START_LIMIT, self.kill):
            self._send(asdict(how))
            greeting = self._answers.readline()
        if greeting != b"ready\n":
            self.close()
            raise WorkerFailed(
                f"Expected a decoding process to start, found exit code {self._popen.returncode}; "
                f"its error is printed above. Try: {sys.executable} -m transduce.images.worker"
            )

    def decode(
        self, entry: Entry, pixels: Float32[np.ndarray, "3 size size"], time_limit: float
    ) -> Readable:
        """Fill `pixels` from the entry's file, or raise `Unreadable`."""
        with _Watch(time_limit, self.kill) as watch:
            self._send({"path": entry.path, "offset": entry.offset, "size": entry.size})
            found = self._answer(pixels)
        if watch.expired or found is None:
            self.close()
            if watch.expired:
                raise Unreadable("took too long", f"more than {time_limit:g} s")
            self.crashed = True
            raise Unreadable("crashed the decoder", f"exit code {self._popen.returncode}")
        if "reason" in found:
            raise Unreadable(found["reason"], found["detail"])
        return Readable(**found)

    def _answer(self, pixels: Float32[np.ndarray, "3 size size"]) -> dict[str, Any] | None:
        """The answer, its pixels in place; None if the process died before the end of it."""
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            return None
        found: dict[str, Any] = json.loads(line)
        if "reason" not in found:
            room = memoryview(pixels.data).cast("B")
            if self._answers.readinto(room) < len(room):  # type: ignore[attr-defined]
                return None
        return found

    def _send(self, message: dict[str, Any]) -> None:
        # A dead process is found out when its answer is read.
        with contextlib.suppress(BrokenPipeError):
            self._requests.write(json.dumps(message).encode() + b"\n")
            self._requests.flush()

    def kill(self) -> None:
        self._popen.kill()

    def close(self) -> None:
        self.ended = True
        self.kill()
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()
        self._popen.wait()


class _Watch:
    """Calls `stop` unless the block ends within the limit; `expired` says whether it did."""

    def __init__(self, limit: float, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._over = False
        self._timer = threading.Timer(limit, self._expire)
        self._timer.daemon = True
        self.expired = False

    def _expire(self) -> None:
        with self._lock:
            if not self._over:
                self.expired = True
                self._stop()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._over = True
        self._timer.cancel()


def _import_path() -> str:
    """The parent's import path, so that the worker finds this very package."""
    return os.pathsep.join(path for path in sys.path if path)
