"""The files of a feature store and what is written in them (clip-retrieval's layout).

    img_emb/img_emb_0000.npy         float16, one row per image
    metadata/metadata_0000.parquet   the same rows: file_name, image_path, sha256, ...
    meta.json                        the encoder's identity, settings, and a hash of each shard
    skipped.csv, duplicates.csv      what has no row and why; which rows have the same content
    manifest.parquet                 every image of the source, in order
    shards/0000.json                 written last: this shard is finished, with these skips

Nothing in them depends on when, where or by how many processes they were written.
"""

import csv
import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from transduce.encoders.encoder import Identity
from transduce.errors import InvalidStore
from transduce.machine.atomic import cell_text, from_plain, read_json, sha256_of, to_plain

FORMAT = "transduce-features"
VERSION = 1
META = "meta.json"
MANIFEST = "manifest.parquet"
SKIPPED = "skipped.csv"
DUPLICATES = "duplicates.csv"
RECORDS = "shards"

# Why an image has no row, where that may be otherwise the next time: it was away, the disk or the
# network failed, the machine was busy, an extra was not installed.
PASSING = ("missing", "cannot be", "no permission", "took too long", "crashed", "needs an extra")


def embeddings_name(shard: int) -> str:
    """Return the path of a shard's array inside the store."""
    return f"img_emb/img_emb_{shard:04d}.npy"


def metadata_name(shard: int) -> str:
    """Return the path of a shard's table inside the store."""
    return f"metadata/metadata_{shard:04d}.parquet"


def record_name(shard: int) -> str:
    """Return the path of a shard's record inside the store."""
    return f"{RECORDS}/{shard:04d}.json"


@dataclass(frozen=True, slots=True)
class Skip:
    """An image of the source that has no row, and why."""

    file_name: str
    image_path: str
    reason: str
    detail: str = ""


def read_skips(path: Path) -> list[Skip]:
    """Return the rows of a skipped.csv."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [
                Skip(**{name: cell_text(cell) for name, cell in row.items()})
                for row in csv.DictReader(file)
            ]
    except (AttributeError, TypeError, ValueError, csv.Error) as error:
        raise InvalidStore(f"Expected a list of skipped images in {path}, found {error}.") from None


@dataclass(frozen=True, slots=True)
class Shard:
    """A finished shard: how many rows, and the hashes that prove its two files whole."""

    index: int
    rows: int
    embeddings_sha256: str
    metadata_sha256: str


@dataclass(frozen=True, slots=True)
class Record:
    """`shards/0000.json`: a finished shard, and the images of its range that have no row."""

    shard: Shard
    skipped: tuple[Skip, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the embeddings besides the encoder; a resumed run keeps to it."""

    batch_size: int = 32
    decoding: str = "exact"  # or "fast", or "unknown" for imported features
    most_pixels: int = 0


@dataclass(frozen=True, slots=True)
class Meta:
    """`meta.json`: identity of the encoder, settings, counts and shards of a store."""

    identity: Identity
    settings: Settings
    source: str = ""
    complete: bool = False
    rows: int = 0
    skipped: int = 0
    duplicates: int = 0
    shards: tuple[Shard, ...] = ()
    parts: tuple[str, ...] = ()  # the hashes of the stores this one was merged from
    files: dict[str, str] = field(default_factory=dict)  # the hashes of its other files

    def to_json(self) -> dict[str, Any]:
        """Return the contents of `meta.json`, with a hash of the rest."""
        data = {"format": FORMAT, "version": VERSION, "dtype": "float16", **to_plain(self)}
        return {**data, "sha256": _digest(data)}


def read_meta(folder: Path) -> Meta:
    """Return the store's `meta.json`, or raise an error that says what the folder is instead."""
    path = folder / META
    if not path.is_file():
        raise InvalidStore(
            f"Expected a feature store, found no {META} in {folder}; make one with: "
            f"transduce embed PHOTOS --out {folder}"
        )
    kind = read_json(path, _Kind, error=InvalidStore)
    if kind.format != FORMAT:
        raise InvalidStore(f"Expected a {FORMAT!r} file, found something else in {path}.")
    if kind.version != VERSION:
        raise InvalidStore(
            f"Expected version {VERSION} of the store, found {kind.version!r} in {path}; "
            "update transduce."
        )
    data = read_json(path, dict[str, Any], error=InvalidStore)
    digest = data.pop("sha256", None)  # stores of older versions have none
    if digest is not None and digest != _digest(data):
        raise InvalidStore(
            f"Expected {path} as it was written, found other bytes (its hash differs); take a "
            "copy of the store, or embed again into a new folder."
        )
    return from_plain(Meta, data, str(path), error=InvalidStore)


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Kind:
    """The first fields of `meta.json`, which say how to read the rest."""

    format: Any = None
    version: Any = None


def is_whole(path: Path, digest: str) -> bool:
    """Whether the file is there and has this SHA-256."""
    try:
        status = path.stat()
        return _file_digest(str(path), status.st_size, status.st_mtime_ns, status.st_ino) == digest
    except OSError:
        return False


@cache
def _file_digest(path: str, size: int, changed: int, number: int) -> str:
    """Return the hash of a file; one that was written again is read again."""
    return sha256_of(Path(path))


def check_whole(folder: Path, name: str, digest: str, source: str) -> None:
    """Raise `InvalidStore` if the file of a shard is not as it was written."""
    if is_whole(folder / name, digest):
        return
    found = "other bytes (its hash differs)" if (folder / name).is_file() else "no such file"
    if (folder / MANIFEST).is_file():
        remedy = (
            f"the command that made the store makes this shard again: {embed_again(folder, source)}"
        )
    else:
        remedy = "import or merge it again into a new folder"
    raise InvalidStore(f"Expected {folder / name} as it was written, found {found}; {remedy}")


def embed_again(folder: Path, source: str) -> str:
    """Return the command that repairs or finishes a store, as far as its files say it."""
    return f"transduce embed {source} --out {folder}"


def may_pass(reason: str) -> bool:
    """Whether an image that was skipped for this reason is to be asked again."""
    return reason.startswith(PASSING)
