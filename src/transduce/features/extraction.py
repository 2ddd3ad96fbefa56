"""From pictures to a feature store.

The unit of work is a shard: a fixed range of the manifest, cut into batches at fixed places. An
embedding depends on nothing else, so a resumed run, one with more workers and one on many
machines all write the same bytes.
"""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Bool, Float16, Float32

from transduce.encoders.encoder import Encoder
from transduce.errors import InvalidSetting, TransduceError
from transduce.features.layout import MANIFEST, Meta, Settings, Skip
from transduce.features.planning import IfChanged, Plan, check_same_encoder, lock, prepare
from transduce.features.writing import Row, finish, read_record, write_record, write_shard
from transduce.images.decoding import MOST_PIXELS, Decoding, Unreadable
from transduce.images.manifest import Entry, Manifest
from transduce.images.pool import TIME_LIMIT, Batch, DecodingPool
from transduce.images.process import Readable
from transduce.images.sources import Found, find_images

MOST_WORKERS = 16  # unless asked for more: each takes some 60 MB, and few encoders eat so fast
BATCHES_AHEAD = 3  # decoded while the encoder works; more would only take memory

Progress = Callable[[int], None]  # called with the number of pictures just settled


@dataclass(frozen=True, slots=True)
class Resources:
    """What a run may use; it changes the speed, never the store."""

    workers: int = 0  # decoding processes; 0 for one per core, within reason
    time_limit: float = TIME_LIMIT  # seconds for one file

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise InvalidSetting(f"Expected workers >= 0, found {self.workers}.")
        if not self.time_limit > 0:
            raise InvalidSetting(f"Expected a positive time limit, found {self.time_limit}.")

    @property
    def processes(self) -> int:
        if self.workers:
            return self.workers
        cores = os.cpu_count() or 1
        if hasattr(os, "sched_getaffinity"):  # fewer than the machine has, inside a container
            cores = len(os.sched_getaffinity(0))
        return min(cores, MOST_WORKERS)


class Executor(Protocol):
    """Makes the pending shards of a plan, wherever it likes."""

    def __call__(self, plan: Plan, resources: Resources, progress: Progress) -> None: ...


@dataclass(frozen=True, slots=True)
class Report:
    """How a run ended; every picture of the source is embedded or skipped."""

    folder: Path
    meta: Meta
    reasons: Counter[str]
    embedded_now: int
    seconds: float

    @property
    def found(self) -> int:
        return self.meta.rows + self.meta.skipped

    @property
    def skipped_share(self) -> float:
        return self.meta.skipped / self.found if self.found else 0.0


def settings_for(
    *, batch_size: int = 32, fast_decode: bool = False, most_pixels: int = MOST_PIXELS
) -> Settings:
    if batch_size < 1 or most_pixels < 1:
        raise InvalidSetting(
            f"Expected a positive batch size and pixel limit, found {batch_size}, {most_pixels}."
        )
    return Settings(batch_size, "fast" if fast_decode else "exact", most_pixels)


def extract(
    source: str | Found,
    out: str | Path,
    encoder: Encoder,
    *,
    settings: Settings | None = None,
    resources: Resources | None = None,
    shard_size: int | None = None,
    if_changed: IfChanged = "stop",
    progress: Progress = lambda images: None,
) -> Report:
    """Embed the pictures of `source` into the store `out`, going on where a run has stopped."""
    found = source if isinstance(source, Found) else find_images(source)
    folder = Path(out)
    with lock(folder):
        plan = prepare(
            found, folder, encoder.identity, settings or settings_for(),
            shard_size=shard_size, if_changed=if_changed,
        )  # fmt: skip
        return execute(plan, local(encoder), resources or Resources(), progress)


def execute(plan: Plan, executor: Executor, resources: Resources, progress: Progress) -> Report:
    """Make the pending shards, then close the store."""
    start = time.monotonic()
    if plan.pending:
        executor(plan, resources, progress)
    shards, skipped = [], []
    for index in range(Manifest(plan.folder / MANIFEST).shards):
        record = read_record(plan.folder, index)
        if record is None:
            raise TransduceError(f"Shard {index} of {plan.folder} was not made; run it again.")
        shards.append(record[0])
        skipped.extend(record[1])
    meta = finish(plan.folder, plan.meta, shards, skipped)
    embedded_now = sum(shard.rows for shard in shards if shard.index in set(plan.pending))
    reasons = Counter(skip.reason for skip in skipped)
    return Report(plan.folder, meta, reasons, embedded_now, time.monotonic() - start)


def local(encoder: Encoder) -> Executor:
    """On this machine: the encoder here, the decoding in worker processes."""

    def run(plan: Plan, resources: Resources, progress: Progress) -> None:
        embed_shards(plan, plan.pending, encoder, resources, progress)

    return run


def embed_shards(
    plan: Plan,
    shards: Sequence[int],
    encoder: Encoder,
    resources: Resources,
    progress: Progress = lambda images: None,
) -> None:
    """Decode, embed and write these shards of the plan, in this order."""
    check_same_encoder(plan.meta.identity, encoder.identity, f"{plan.folder}", "this process")
    settings = plan.meta.settings
    how = Decoding(encoder.preprocessing, settings.most_pixels, settings.decoding == "fast")
    manifest = Manifest(plan.folder / MANIFEST)
    with DecodingPool(how, workers=resources.processes, time_limit=resources.time_limit) as pool:
        jobs = _batches(manifest, shards, settings.batch_size)
        collected = _Collected(encoder.identity.dimension)
        for shard, last, batch in _ahead(pool, jobs):
            batch.wait()
            collected.add(batch, _embed(encoder, batch))
            pool.recycle(batch)
            if last:
                made = write_shard(plan.folder, shard, collected.array(), collected.rows)
                write_record(plan.folder, made, collected.skipped)
                collected = _Collected(encoder.identity.dimension)
            progress(len(batch.entries))


def _batches(
    manifest: Manifest, shards: Sequence[int], size: int
) -> Iterator[tuple[int, bool, list[Entry]]]:
    """(shard, whether it is its last batch, entries)."""
    for shard in shards:
        entries = manifest.shard(shard)
        for start in range(0, len(entries), size):
            yield shard, start + size >= len(entries), entries[start : start + size]


def _ahead(
    pool: DecodingPool, jobs: Iterator[tuple[int, bool, list[Entry]]]
) -> Iterator[tuple[int, bool, Batch]]:
    """The same batches, submitted to the pool some time before they are needed."""
    waiting: deque[tuple[int, bool, Batch]] = deque()
    for shard, last, entries in jobs:
        waiting.append((shard, last, pool.submit(entries)))
        if len(waiting) > BATCHES_AHEAD:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def _embed(encoder: Encoder, batch: Batch) -> Float32[np.ndarray, "image feature"]:
    """The embeddings of the readable pictures of the batch."""
    readable = np.array([isinstance(outcome, Readable) for outcome in batch.outcomes])
    if not readable.any():
        return np.empty((0, encoder.identity.dimension), np.float32)
    pixels = batch.pixels if readable.all() else batch.pixels[readable]
    try:
        embeddings = encoder.embed_images(pixels)
    except (MemoryError, RuntimeError) as error:
        # torch has its own type on a GPU; on a CPU it and onnxruntime say so only in words.
        words = f"{type(error).__name__} {error}"
        if "Memory" in words or "allocate" in words:
            raise TransduceError(
                f"Out of memory with {len(pixels)} pictures at a time; begin again in an empty "
                f"--out with --batch-size {max(1, len(pixels) // 2)}."
            ) from error
        raise
    expected = (len(pixels), encoder.identity.dimension)
    if embeddings.shape != expected:
        raise TransduceError(
            f"Expected embeddings of shape {expected} from {encoder.identity.encoder}, "
            f"found {embeddings.shape}."
        )
    return embeddings


class _Collected:
    """The rows and skips of the shard being made."""

    def __init__(self, dimension: int) -> None:
        self._blocks = [np.empty((0, dimension), np.float16)]
        self.rows: list[Row] = []
        self.skipped: list[Skip] = []

    def array(self) -> Float16[np.ndarray, "row feature"]:
        return np.concatenate(self._blocks)

    def add(self, batch: Batch, embeddings: Float32[np.ndarray, "image feature"]) -> None:
        usable = _usable(embeddings)
        self._blocks.append(embeddings[usable].astype(np.float16))
        number = 0
        for entry, outcome in zip(batch.entries, batch.outcomes, strict=True):
            if isinstance(outcome, Readable):
                if usable[number]:
                    self.rows.append(_row(entry, outcome))
                else:
                    self._skip(entry, Unreadable("no embedding", "the encoder gave no direction"))
                number += 1
            else:
                assert outcome is not None
                self._skip(entry, outcome)

    def _skip(self, entry: Entry, why: Unreadable) -> None:
        self.skipped.append(Skip(entry.key, entry.path, why.reason, why.detail))


def _row(entry: Entry, seen: Readable) -> Row:
    return Row(entry.key, entry.path, seen.sha256, seen.width, seen.height, seen.converted)


def _usable(embeddings: Float32[np.ndarray, "image feature"]) -> Bool[np.ndarray, " image"]:
    """Finite and with a direction: one NaN row would spoil every statistic made of it."""
    sums = np.abs(embeddings).sum(1)
    usable: Bool[np.ndarray, " image"] = np.isfinite(sums) & (sums > 0)
    return usable
