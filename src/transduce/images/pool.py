"""Worker processes that decode images; one that a file crashed or stopped is replaced.

One thread looks after each process: it hands over a file, waits, and reads the pixels straight into
their row of the batch. A file that crashes its process or outlasts the time limit costs that
process only: it is killed and replaced, and the file gets its reason.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
from jaxtyping import Float32

from transduce.errors import WorkerFailed
from transduce.images.decoding import Decoding
from transduce.images.entries import Entry, Unreadable

TIME_LIMIT = 30.0  # seconds for one file
START_LIMIT = 120.0  # seconds for a process to start, on the busiest of machines


@dataclass(frozen=True, slots=True)
class Readable:
    """What is known of a decoded image; its pixels are in the batch."""

    width: int
    height: int
    sha256: str
    converted: str


@dataclass(slots=True)
class Batch:
    """Images that go through the encoder together: `pixels[i]` and `outcomes[i]` of `entries[i]`.

    `also` are the pixels of the same entries for further encoders. Pixels of an unreadable entry
    are left over from before; never read them.
    """

    entries: Sequence[Entry]
    pixels: Float32[np.ndarray, "image 3 size size"]
    outcomes: list[Readable | Unreadable | None] = field(default_factory=list)
    failure: WorkerFailed | None = None
    also: tuple[Float32[np.ndarray, "image 3 _size _size"], ...] = ()
    _left: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _done: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.outcomes = [None] * len(self.entries)
        self._left = len(self.entries)

    def settle(self, row: int, outcome: Readable | Unreadable) -> None:
        """Record the outcome of an entry."""
        with self._lock:
            self.outcomes[row] = outcome
            self._left -= 1
            if self._left == 0:
                self._done.set()

    def fail(self, failure: WorkerFailed) -> None:
        """End the wait with an error."""
        self.failure = failure
        self._done.set()

    def wait(self) -> None:
        """Return when each entry is settled; raises what `fail` was given."""
        self._done.wait()
        if self.failure is not None:
            raise self.failure


class DecodingProcess:
    """A decoding process, used by one thread, with a limit on every wait."""

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
            self._send({"parent": os.getpid(), **asdict(how)})
            greeting = self._answers.readline()
        if greeting != b"ready\n":
            self.close()
            raise WorkerFailed(
                f"Expected a decoding process to start, found exit code {self._popen.returncode}; "
                f"its error is printed above. Try: {sys.executable} -m transduce.images.worker"
            )

    def decode(self, entry: Entry, pixels: Sequence[np.ndarray], time_limit: float) -> Readable:
        """Fill `pixels`, an array for each encoder, from the file, or raise `Unreadable`."""
        with _Watch(time_limit, self.kill) as watch:
            self._send(
                {
                    "path": entry.path,
                    "offset": entry.offset,
                    "size": entry.size,
                    "seconds": time_limit,
                }
            )
            answer = self._answer(pixels)
        if watch.expired or answer is None:
            self.close()
            if watch.expired:
                raise Unreadable("took too long", f"more than {time_limit:g} s")
            self.crashed = True
            raise Unreadable("crashed the decoder", f"exit code {self._popen.returncode}")
        if "reason" in answer:
            raise Unreadable(answer["reason"], answer["detail"])
        return Readable(**answer)

    def _answer(self, pixels: Sequence[np.ndarray]) -> dict[str, Any] | None:
        """Return the answer, its pixels written; None if the process died before its end."""
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            return None
        answer: dict[str, Any] = json.loads(line)
        if "reason" not in answer:
            for room in (memoryview(array.data).cast("B") for array in pixels):
                if self._answers.readinto(room) < len(room):  # type: ignore[attr-defined]
                    return None
        return answer

    def _send(self, message: dict[str, Any]) -> None:
        # Whether the process is dead shows when its answer is read.
        with contextlib.suppress(BrokenPipeError):
            self._requests.write(json.dumps(message).encode() + b"\n")
            self._requests.flush()

    def kill(self) -> None:
        """End the process at once."""
        self._popen.kill()

    def close(self) -> None:
        """End the process and its pipes."""
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
    """Return the parent's import path, so that the worker finds the same package."""
    return os.pathsep.join(path for path in sys.path if path)


class DecodingPool:
    """Decoding processes: `submit` a batch, do something else, then `wait` for it."""

    def __init__(self, how: Decoding, *, workers: int, time_limit: float = TIME_LIMIT) -> None:
        self._how = how
        self._time_limit = time_limit
        self._work: queue.SimpleQueue[tuple[Batch, int] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._processes: list[DecodingProcess] = []
        self._spare: list[list[np.ndarray]] = []
        self._threads = [
            threading.Thread(target=self._look_after_one, daemon=True) for _ in range(workers)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._closed.set()
            for process in self._processes:
                process.kill()  # one may be in the middle of a file, and nobody waits for it
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def submit(self, entries: Sequence[Entry]) -> Batch:
        """Begin to decode the entries; `wait` for the batch before reading it."""
        pixels, *also = self._pixels(len(entries))
        batch = Batch(entries, pixels, also=tuple(also))
        for row in range(len(entries)):
            self._work.put((batch, row))
        return batch

    def recycle(self, batch: Batch) -> None:
        """Reuse the memory of a batch whose pixels are not read any more."""
        self._spare.append([batch.pixels, *batch.also])

    def _pixels(self, rows: int) -> list[np.ndarray]:
        """Return an array for the images of each encoder."""
        for index, pixels in enumerate(self._spare):
            if len(pixels[0]) == rows:
                return self._spare.pop(index)
        self._spare.clear()  # the last, shorter batch of a shard: keep no odd sizes
        sizes = [each.size for each in self._how.preprocessings]
        return [np.zeros((rows, 3, size, size), np.float32) for size in sizes]

    def _look_after_one(self) -> None:
        process: DecodingProcess | None = None
        while (item := self._work.get()) is not None and not self._closed.is_set():
            batch, row = item
            try:
                process = self._settle(batch, row, process)
            except WorkerFailed as failure:
                batch.fail(failure)
            except Exception as surprise:  # a waiting caller must hear of it, never hang
                batch.fail(WorkerFailed(f"Decoding failed: {surprise!r}"))
        if process is not None:
            process.close()

    def _settle(
        self, batch: Batch, row: int, process: DecodingProcess | None
    ) -> DecodingProcess | None:
        """Decode one image and return the process to use next, if it still lives."""
        entry = batch.entries[row]
        if entry.problem:
            batch.settle(row, Unreadable(entry.problem))
            return process
        outcome: Readable | Unreadable
        for last_try in (False, True):
            process = process or self._start()
            try:
                pixels = [array[row] for array in (batch.pixels, *batch.also)]
                outcome = process.decode(entry, pixels, self._time_limit)
            except Unreadable as reason:
                outcome = reason
            crashed, process = process.crashed, None if process.ended else process
            # A crash may be none of the file's fault (the system was short of memory): try again.
            if not crashed or last_try or self._closed.is_set():
                break
        batch.settle(row, outcome)
        return process

    def _start(self) -> DecodingProcess:
        process = DecodingProcess(self._how)
        with self._lock:
            self._processes = [p for p in self._processes if not p.ended] + [process]
            if self._closed.is_set():  # while it started; nobody else will end it
                process.kill()
        return process
