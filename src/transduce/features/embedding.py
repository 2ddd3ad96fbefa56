"""From images to a feature store: `embed`.

The unit of work is a shard: a fixed range of the manifest, cut into batches at fixed offsets. An
embedding depends on nothing else, so a resumed run, one with more workers and one on many
machines all write the same bytes.
"""

import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Float32

from transduce.encoders.encoder import ImageEncoder
from transduce.errors import InvalidSetting, TransduceError
from transduce.features.layout import MANIFEST, Meta, Settings, Shard, Skip
from transduce.features.planning import IfChanged, Plan, check_same_encoder, lock, prepare
from transduce.features.store import FeatureStore
from transduce.features.writing import Row, finish, read_record, write_record, write_shard
from transduce.images.decoding import MOST_PIXELS, Decoding
from transduce.images.entries import Entry, Listing, Unreadable
from transduce.images.manifest import Manifest
from transduce.images.pool import TIME_LIMIT, Batch, DecodingPool, Readable
from transduce.images.sources import find_images
from transduce.simplex.threads import available_cores

MOST_WORKERS = 16  # unless asked for more: each takes some 60 MB, and few encoders are faster
BATCHES_AHEAD = 3  # decoded while the encoder works; more would only take memory

Progress = Callable[[int], None]  # called with the number of images just embedded or skipped
Watch = Callable[[Plan], AbstractContextManager[Progress]]  # called once, before the first image


@dataclass(frozen=True, slots=True)
class Resources:
    """Processes and time that a run may use; they change its speed, never the store.

    Parameters
    ----------
    workers : int, default 0
        Decoding processes; 0 is one per core, at most 16.
    time_limit : float, default 30
        Seconds for one file, after which it is skipped.
    """

    workers: int = 0
    time_limit: float = TIME_LIMIT

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise InvalidSetting(f"Expected workers >= 0, found {self.workers}.")
        if not self.time_limit > 0:
            raise InvalidSetting(f"Expected a positive time limit, found {self.time_limit}.")

    @property
    def processes(self) -> int:
        """The number of decoding processes to start."""
        return self.workers or min(available_cores(), MOST_WORKERS)


class ShardExecutor(Protocol):
    """Makes the pending shards of a plan, in this process or on other machines."""

    def __call__(self, plan: Plan, resources: Resources, progress: Progress) -> None:
        """Embed and write every pending shard."""
        ...


Target = tuple[Plan, Callable[[], ImageEncoder]]  # a store to be made, and how to get its encoder


@dataclass(frozen=True)
class Carried:
    """An encoder to send to other processes, or a function that loads it there.

    Without `load` the encoder itself is sent.
    """

    encoder: ImageEncoder | None
    load: Callable[[], ImageEncoder] | None = None

    def __call__(self) -> ImageEncoder:
        """Return the encoder."""
        if self.encoder is not None:
            return self.encoder
        assert self.load is not None
        return self.load()

    def __reduce__(self) -> tuple[type["Carried"], tuple[Any, ...]]:
        return Carried, ((self.encoder,) if self.load is None else (None, self.load))


class Together(Protocol):
    """Makes shards of one or more stores of the same images, each image decoded once."""

    def __call__(
        self,
        targets: Sequence[Target],
        shards: Sequence[int],
        resources: Resources,
        progress: Progress,
    ) -> None:
        """Embed these shards with every encoder, and write them in every store."""
        ...


def embed(
    source: str | Path | Listing,
    encoder: ImageEncoder,
    *,
    out: str | Path | None = None,
    batch_size: int = 32,
    fast_decode: bool = False,
    most_pixels: int = MOST_PIXELS,
    shard_size: int | None = None,
    if_changed: IfChanged = "stop",
    resources: Resources | None = None,
    executor: ShardExecutor | None = None,
    watch: Watch = lambda plan: nullcontext(lambda images: None),
) -> FeatureStore:
    """Embed the images of a source into a feature store.

    Images are decoded in worker processes; a file that cannot be read is skipped and listed with
    its reason in `FeatureStore.skipped()`. Repeat a stopped call with the same `out`, and it goes
    on with the first unfinished shard.

    Parameters
    ----------
    source : str, Path or Listing
        A folder, a glob, a list (.txt, or .csv and .parquet with a `file_name` column), a .tar, a
        .parquet with images inside, a URL that fsspec can read, or what `find_images` returned.
    encoder : ImageEncoder
        As `load_encoder` returns it; a text tower is not needed.
    out : str or Path, optional
        The folder of the store. By default a temporary one, removed with the returned object.
    batch_size : int, default 32
        Images per forward pass; lower it if memory runs out. The last bits of an embedding may
        depend on it, so a store is finished with the size it was begun with.
    fast_decode : bool, default False
        Let the JPEG decoder shrink while it reads: several times faster on photographs, and
        slightly different pixels.
    most_pixels : int, default 178,956,970
        Larger images are skipped; the default is where Pillow speaks of a decompression bomb.
    shard_size : int, optional
        Images per shard; an interruption loses at most one shard. By default 256, more for over
        256,000 images.
    if_changed : {"stop", "keep", "extend"}, default "stop"
        If `out` was begun and the source has changed since: refuse, go on with the old list, or
        add the new images.
    resources : Resources, optional
        Decoding processes and the time limit for one file.
    executor : ShardExecutor, optional
        Where the shards are made; by default in this process. See `features.ray_executor.on_ray`.
    watch : callable, optional
        Called with the `Plan` before the first image; returns a context manager that yields a
        function to call with the number of images just settled. For progress bars.

    Returns
    -------
    FeatureStore
        One unit row per readable image, in the order of the file names. `np.asarray(store)` is
        the float32 array (image, feature); `store.keys()` are the file names.

    Raises
    ------
    NoImages
        If the source holds no image.
    InvalidStore, InvalidSetting, EncoderMismatch
        If `out` holds something else, or was begun with other settings or another encoder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from transduce.encoders import load_encoder
    >>> folder = tempfile.TemporaryDirectory()
    >>> Image.new("RGB", (64, 64), "red").save(Path(folder.name) / "red.png")
    >>> store = embed(folder.name, load_encoder("shapes"), resources=Resources(workers=1))
    >>> store.keys(), store.embeddings().shape
    (['red.png'], (1, 65))
    >>> folder.cleanup()
    """
    if batch_size < 1 or most_pixels < 1:
        raise InvalidSetting(
            f"Expected a positive batch size and pixel limit, found {batch_size}, {most_pixels}."
        )
    settings = Settings(batch_size, "fast" if fast_decode else "exact", most_pixels)
    listing = source if isinstance(source, Listing) else find_images(str(source))
    folder = Path(tempfile.mkdtemp(prefix="transduce-") if out is None else out)
    try:
        with lock(folder):
            plan = prepare(
                listing,
                folder,
                encoder.identity,
                settings,
                shard_size=shard_size,
                if_changed=if_changed,
            )
            with watch(plan) as progress:
                meta = execute(plan, executor or local(encoder), resources or Resources(), progress)
    except BaseException:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    store = FeatureStore(folder, meta)
    if out is None:
        weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True)
    return store


def execute(plan: Plan, executor: ShardExecutor, resources: Resources, progress: Progress) -> Meta:
    """Make the pending shards, then close the store; returns its meta."""
    if plan.pending:
        executor(plan, resources, progress)
    shards: list[Shard] = []
    skipped: list[Skip] = []
    for index in range(Manifest(plan.folder / MANIFEST).shards):
        record = read_record(plan.folder, index)
        if record is None:
            raise TransduceError(f"Shard {index} of {plan.folder} was not made; run it again.")
        shards.append(record[0])
        skipped.extend(record[1])
    return finish(plan.folder, plan.meta, shards, skipped)


def local(encoder: ImageEncoder) -> ShardExecutor:
    """Return an executor of this machine: the encoder here, the decoding in worker processes."""

    def run(plan: Plan, resources: Resources, progress: Progress) -> None:
        embed_shards(plan, plan.pending, encoder, resources, progress)

    return run


def embed_shards(
    plan: Plan,
    shards: Sequence[int],
    encoder: ImageEncoder,
    resources: Resources,
    progress: Progress = lambda images: None,
) -> None:
    """Decode, embed and write these shards of the plan, in this order."""
    embed_together([(plan, encoder)], shards, resources, progress)


def together_here(
    targets: Sequence[Target], shards: Sequence[int], resources: Resources, progress: Progress
) -> None:
    """Make shards of several stores in this process."""
    embed_together([(plan, load()) for plan, load in targets], shards, resources, progress)


def embed_together(
    targets: Sequence[tuple[Plan, ImageEncoder]],
    shards: Sequence[int],
    resources: Resources,
    progress: Progress = lambda images: None,
) -> None:
    """Decode these shards once, embed them with every encoder, and write them in every store.

    The plans are of the same images, cut into the same shards and batches.
    """
    for plan, encoder in targets:
        check_same_encoder(plan.meta.identity, encoder.identity, f"{plan.folder}", "this process")
    settings = targets[0][0].meta.settings
    prepare_first, *prepare_others = (encoder.preprocessing for _, encoder in targets)
    fast = settings.decoding == "fast"
    how = Decoding(prepare_first, settings.most_pixels, fast, tuple(prepare_others))
    manifest = Manifest(targets[0][0].folder / MANIFEST)
    with DecodingPool(how, workers=resources.processes, time_limit=resources.time_limit) as pool:
        jobs = _batches(manifest, shards, settings.batch_size)
        collected = [_Collected(plan, encoder) for plan, encoder in targets]
        for shard, last, batch in _ahead(pool, jobs):
            batch.wait()
            for part, pixels in zip(collected, (batch.pixels, *batch.also), strict=True):
                part.add(batch, pixels)
            pool.recycle(batch)
            if last:
                for part in collected:
                    part.write(shard)
            progress(len(batch.entries))


def _batches(
    manifest: Manifest, shards: Sequence[int], size: int
) -> Iterator[tuple[int, bool, list[Entry]]]:
    """Yield (shard, whether it is its last batch, entries)."""
    for shard in shards:
        entries = manifest.shard(shard)
        for start in range(0, len(entries), size):
            yield shard, start + size >= len(entries), entries[start : start + size]


def _ahead(
    pool: DecodingPool, jobs: Iterator[tuple[int, bool, list[Entry]]]
) -> Iterator[tuple[int, bool, Batch]]:
    """Yield the batches, submitted to the pool some time before they are needed."""
    waiting: deque[tuple[int, bool, Batch]] = deque()
    for shard, last, entries in jobs:
        waiting.append((shard, last, pool.submit(entries)))
        if len(waiting) > BATCHES_AHEAD:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def _embed(
    encoder: ImageEncoder, batch: Batch, pixels: Float32[np.ndarray, "image 3 size size"]
) -> Float32[np.ndarray, "image feature"]:
    """Return the embeddings of the readable images of the batch."""
    readable = np.array([isinstance(outcome, Readable) for outcome in batch.outcomes])
    if not readable.any():
        return np.empty((0, encoder.identity.dimension), np.float32)
    pixels = pixels if readable.all() else pixels[readable]
    try:
        embeddings = encoder.embed_images(pixels)
    except (MemoryError, RuntimeError) as error:
        # torch has its own type on a GPU; on a CPU it and onnxruntime say so only in words.
        words = f"{type(error).__name__} {error}"
        if "Memory" in words or "allocate" in words:
            raise TransduceError(
                f"Out of memory with {len(pixels)} images at a time; begin again in an empty "
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

    def __init__(self, plan: Plan, encoder: ImageEncoder) -> None:
        self._plan = plan
        self._encoder = encoder
        self._begin()

    def _begin(self) -> None:
        self._blocks = [np.empty((0, self._encoder.identity.dimension), np.float16)]
        self._rows: list[Row] = []
        self._skipped: list[Skip] = []

    def write(self, shard: int) -> None:
        """Write the shard, and begin the next."""
        made = write_shard(self._plan.folder, shard, np.concatenate(self._blocks), self._rows)
        write_record(self._plan.folder, made, self._skipped)
        self._begin()

    def add(self, batch: Batch, pixels: Float32[np.ndarray, "image 3 size size"]) -> None:
        """Embed the images of a batch."""
        embeddings = _embed(self._encoder, batch, pixels)
        usable = _usable(embeddings)
        self._blocks.append(embeddings[usable].astype(np.float16))
        number = 0
        for entry, outcome in zip(batch.entries, batch.outcomes, strict=True):
            if isinstance(outcome, Readable):
                if usable[number]:
                    self._rows.append(_row(entry, outcome))
                else:
                    self._skip(entry, Unreadable("no embedding", "the encoder gave no direction"))
                number += 1
            else:
                assert outcome is not None
                self._skip(entry, outcome)

    def _skip(self, entry: Entry, why: Unreadable) -> None:
        self._skipped.append(Skip(entry.key, entry.path, why.reason, why.detail))


def _row(entry: Entry, seen: Readable) -> Row:
    return Row(entry.key, entry.path, seen.sha256, seen.width, seen.height, seen.converted)


def _usable(embeddings: Float32[np.ndarray, "image feature"]) -> Bool[np.ndarray, " image"]:
    """Whether each row is finite and not zero: one NaN row would spoil every statistic."""
    sums = np.abs(embeddings).sum(1)
    return np.isfinite(sums) & (sums > 0)
