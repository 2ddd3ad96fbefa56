"""Worker processes that decode pictures, and survive any of them.

One thread looks after each process: it hands over a file, waits, and reads the pixels straight into
their row of the batch. A file that crashes its process or outlasts the time limit costs that
process only: it is killed and replaced, and the file gets its reason.
"""

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np
from jaxtyping import Float32

from transduce.errors import WorkerFailed
from transduce.images.decoding import Decoding, Unreadable
from transduce.images.manifest import Entry
from transduce.images.process import DecodingProcess, Readable

TIME_LIMIT = 30.0  # seconds for one file


@dataclass(slots=True)
class Batch:
    """Pictures that go through the encoder together: `pixels[i]` and `outcomes[i]` of `entries[i]`.

    Pixels of an unreadable entry are left over from before; never read them.
    """

    entries: Sequence[Entry]
    pixels: Float32[np.ndarray, "image 3 size size"]
    outcomes: list[Readable | Unreadable | None] = field(default_factory=list)
    failure: WorkerFailed | None = None
    _left: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _done: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.outcomes = [None] * len(self.entries)
        self._left = len(self.entries)

    def settle(self, row: int, outcome: Readable | Unreadable) -> None:
        with self._lock:
            self.outcomes[row] = outcome
            self._left -= 1
            if self._left == 0:
                self._done.set()

    def fail(self, failure: WorkerFailed) -> None:
        self.failure = failure
        self._done.set()

    def wait(self) -> None:
        """Until each entry is settled."""
        self._done.wait()
        if self.failure is not None:
            raise self.failure


class DecodingPool:
    """`workers` processes; `submit` a batch, do something else, then `wait` for it."""

    def __init__(self, how: Decoding, *, workers: int, time_limit: float = TIME_LIMIT) -> None:
        self._how = how
        self._time_limit = time_limit
        self._work: queue.SimpleQueue[tuple[Batch, int] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._processes: list[DecodingProcess] = []
        self._spare: list[Float32[np.ndarray, "image 3 size size"]] = []
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
        batch = Batch(entries, self._pixels(len(entries)))
        for row in range(len(entries)):
            self._work.put((batch, row))
        return batch

    def recycle(self, batch: Batch) -> None:
        """Use the memory of a batch again, once nobody reads its pixels any more."""
        self._spare.append(batch.pixels)

    def _pixels(self, rows: int) -> Float32[np.ndarray, "image 3 size size"]:
        for index, pixels in enumerate(self._spare):
            if len(pixels) == rows:
                return self._spare.pop(index)
        self._spare.clear()  # the last, shorter batch of a shard: keep no odd sizes
        size = self._how.preprocessing.size
        return np.zeros((rows, 3, size, size), np.float32)

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
        """Decode one picture and return the process to use next, if it still lives."""
        entry = batch.entries[row]
        if entry.problem:
            batch.settle(row, Unreadable(entry.problem))
            return process
        outcome: Readable | Unreadable
        for last_try in (False, True):
            process = process or self._start()
            try:
                outcome = process.decode(entry, batch.pixels[row], self._time_limit)
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
