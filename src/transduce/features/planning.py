"""What an embedding run has to do: begin, go on with the rest, or take in a changed source."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from transduce.encoders.encoder import Identity
from transduce.errors import EncoderMismatch, InvalidSetting, InvalidStore
from transduce.features.layout import MANIFEST, META, Meta, Settings, Skip, may_pass, read_meta
from transduce.features.writing import clear, read_record, sweep, write_meta
from transduce.images.entries import Entry, Listing
from transduce.images.manifest import Changes, Manifest, compare, write_manifest
from transduce.machine.atomic import hold

IfChanged = Literal["stop", "keep", "extend"]

FEWEST_ROWS = 256  # what an interruption loses at most; more when there are very many
MOST_SHARDS = 1000
LOCK = ".lock"
ASKED_ANYWAY = ("took too long", "crashed")  # the file was there, what went wrong was elsewhere


@dataclass(frozen=True, slots=True)
class Plan:
    """The manifest, the shards still to do, and what they are made with."""

    folder: Path
    meta: Meta
    pending: tuple[int, ...]
    images: int  # in the manifest
    images_pending: int
    changes: Changes | None = None  # of the source since the manifest, where they were accepted

    @property
    def resumed(self) -> bool:
        """Whether a part of the images is done already."""
        return self.images_pending < self.images


def prepare(
    listing: Listing,
    folder: Path,
    identity: Identity,
    settings: Settings,
    *,
    shard_size: int | None = None,
    if_changed: IfChanged = "stop",
) -> Plan:
    """Begin a store in `folder`, or go on with the one that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    meta = Meta(identity=identity, settings=settings, source=listing.source)
    before = _started(folder)
    changes = None
    if before is None:
        clear(folder)
        write_manifest(folder / MANIFEST, _cut(listing.entries, shard_size, settings.batch_size))
        write_meta(folder, meta)
    else:
        _check_same(folder, before, meta)
        sweep(folder)
        changes = _accept_changes(listing, folder, if_changed, shard_size, settings)
        meta = replace(before, source=listing.source)
    return _plan(folder, meta, changes)


def _plan(folder: Path, meta: Meta, changes: Changes | None) -> Plan:
    manifest = Manifest(folder / MANIFEST)
    pending = tuple(i for i in range(manifest.shards) if _is_pending(folder, i))
    if pending and meta.complete:  # extended, or a file was lost: closed to readers until done
        meta = replace(meta, complete=False)
        write_meta(folder, meta)
    return Plan(
        folder=folder,
        meta=meta,
        pending=pending,
        images=len(manifest),
        images_pending=sum(manifest.rows_of(shard) for shard in pending),
        changes=changes,
    )


def _is_pending(folder: Path, index: int) -> bool:
    """Whether a shard is to be made: missing, damaged, or without images that can be read now."""
    record = read_record(folder, index)
    return record is None or any(_is_back(skip) for skip in record[1])


def _is_back(skip: Skip) -> bool:
    """Whether an image that could not be read before is to be asked again."""
    if not may_pass(skip.reason):
        return False
    if skip.reason.startswith(ASKED_ANYWAY) or "://" in skip.image_path:
        return True
    try:
        with Path(skip.image_path).open("rb") as file:
            return bool(file.read(1))
    except (OSError, ValueError):
        return False


def _started(folder: Path) -> Meta | None:
    """Return the meta of a run with a finished shard; None if there is nothing to keep."""
    if (folder / META).exists():
        meta = read_meta(folder)
        if not (folder / MANIFEST).exists():
            raise InvalidStore(
                f"Expected an empty folder or a store that `embed` began, found an imported or "
                f"merged store in {folder}; choose another --out."
            )
        shards = range(Manifest(folder / MANIFEST).shards)
        return meta if any(read_record(folder, shard) for shard in shards) else None
    others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if others and others != [MANIFEST]:
        raise InvalidStore(
            f"Expected an empty folder or a feature store at {folder}, found {others[0]!r}"
            f"{' and more' if len(others) > 1 else ''}; choose another --out."
        )
    return None


def _check_same(folder: Path, before: Meta, now: Meta) -> None:
    check_same_encoder(before.identity, now.identity, f"the features in {folder}", "this run")
    old, new = asdict(before.settings), asdict(now.settings)
    for name in old:
        if old[name] != new[name]:
            raise InvalidSetting(
                f"Expected {name} {old[name]} as when {folder} was begun, found {new[name]}; "
                "repeat the first command, or choose another --out."
            )


def check_same_encoder(old: Identity, new: Identity, old_name: str, new_name: str) -> None:
    """Raise `EncoderMismatch` unless name, weights, preprocessing and dimension are equal."""
    for name in ("encoder", "weights", "preprocessing", "dimension"):
        old_value, new_value = getattr(old, name), getattr(new, name)
        if old_value != new_value:
            raise EncoderMismatch(
                f"Expected one encoder, found {name} {old_value} in {old_name} but {new_value} in "
                f"{new_name}; embed both with the same encoder, or keep them apart."
            )


def _accept_changes(
    listing: Listing,
    folder: Path,
    if_changed: IfChanged,
    shard_size: int | None,
    settings: Settings,
) -> Changes | None:
    manifest = _with_recovered(Manifest(folder / MANIFEST), listing, folder)
    changes = compare(manifest, listing.entries)
    if not changes:
        return None
    if if_changed == "stop":
        raise InvalidStore(
            f"Expected {listing.source} as it was when {folder} was begun, found "
            f"{changes.describe()}; choose --if-changed extend to add the new images, "
            "--if-changed keep to go on with the old list, or another --out to begin again."
        )
    if if_changed == "extend" and changes.new:
        kept = [manifest.shard(index) for index in range(manifest.shards)]
        added = _cut(changes.new, shard_size, settings.batch_size)
        write_manifest(folder / MANIFEST, [*kept, *added])
    return changes


def _with_recovered(manifest: Manifest, listing: Listing, folder: Path) -> Manifest:
    """Return the manifest with the present entries of images that had a problem when listed."""
    now = {(entry.key, entry.path): entry for entry in listing.entries if not entry.problem}
    shards = [manifest.shard(index) for index in range(manifest.shards)]
    updated = [
        [now.get((old.key, old.path), old) if may_pass(old.problem) else old for old in shard]
        for shard in shards
    ]
    if updated == shards:
        return manifest
    write_manifest(folder / MANIFEST, updated)
    return Manifest(folder / MANIFEST)


def _cut(
    entries: Sequence[Entry], shard_size: int | None, batch_size: int
) -> list[Sequence[Entry]]:
    size = shard_size or max(FEWEST_ROWS, -(-len(entries) // MOST_SHARDS))
    size = -(-size // batch_size) * batch_size  # whole batches
    return [entries[start : start + size] for start in range(0, len(entries), size)]


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep a second run out of the folder; the system frees the lock however the first ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        try:
            hold(file, wait=False)
        except BlockingIOError:
            raise InvalidStore(
                f"Expected {folder} for ourselves, found another run writing there; wait for it, "
                "stop it, or choose another --out."
            ) from None
        try:
            yield
        finally:
            if not (folder / META).exists():  # refused: leave no trace in a folder of others
                (folder / LOCK).unlink(missing_ok=True)
