"""The files of a feature store and what is written in them (clip-retrieval's layout).

    img_emb/img_emb_0000.npy         float16, one row per picture
    metadata/metadata_0000.parquet   the same rows: file_name, image_path, sha256, ...
    meta.json                        the encoder's identity, settings, and a hash of each shard
    skipped.csv, duplicates.csv      what has no row and why; which rows have the same content
    manifest.parquet                 every picture of the source, in order
    shards/0000.json                 written last: this shard is finished, with these skips

Nothing in them depends on when, where or by how many processes they were written.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from transduce.encoders.encoder import Identity
from transduce.errors import InvalidStore

FORMAT = "transduce-features"
VERSION = 1
META = "meta.json"
MANIFEST = "manifest.parquet"
SKIPPED = "skipped.csv"
DUPLICATES = "duplicates.csv"
RECORDS = "shards"


def embeddings_name(shard: int) -> str:
    return f"img_emb/img_emb_{shard:04d}.npy"


def metadata_name(shard: int) -> str:
    return f"metadata/metadata_{shard:04d}.parquet"


def record_name(shard: int) -> str:
    return f"{RECORDS}/{shard:04d}.json"


@dataclass(frozen=True, slots=True)
class Skip:
    """A picture of the source that has no row, and why."""

    file_name: str
    image_path: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Shard:
    """A finished shard: how many rows, and the hashes that prove its two files whole."""

    index: int
    rows: int
    embeddings_sha256: str
    metadata_sha256: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the numbers beside the encoder; a resumed run keeps to it."""

    batch_size: int = 32
    decoding: str = "exact"  # or "fast", or "unknown" for imported features
    most_pixels: int = 0


@dataclass(frozen=True, slots=True)
class Meta:
    """`meta.json`."""

    identity: Identity
    settings: Settings
    source: str = ""
    complete: bool = False
    rows: int = 0
    skipped: int = 0
    duplicates: int = 0
    shards: tuple[Shard, ...] = ()
    parts: tuple[str, ...] = field(default=())  # the hashes of the stores this one was merged from

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, "dtype": "float16", **asdict(self)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        return cls(
            identity=Identity(**found["identity"]),
            settings=Settings(**found["settings"]),
            source=found["source"],
            complete=found["complete"],
            rows=found["rows"],
            skipped=found["skipped"],
            duplicates=found["duplicates"],
            shards=tuple(Shard(**shard) for shard in found["shards"]),
            parts=tuple(found["parts"]),
        )


def read_meta(folder: Path) -> Meta:
    """The store's `meta.json`, or an error that says what the folder is instead."""
    path = folder / META
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidStore(
            f"Expected a feature store, found no {META} in {folder}; make one with: "
            f"transduce embed PHOTOS --out {folder}"
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidStore(f"Expected JSON in {path}, found {error}; embed again.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InvalidStore(f"Expected a {FORMAT!r} file, found something else in {path}.")
    if found.get("version") != VERSION:
        raise InvalidStore(
            f"Expected version {VERSION} of the store, found {found.get('version')!r} in {path}; "
            "update transduce."
        )
    try:
        return Meta.from_json(found)
    except (KeyError, TypeError) as error:
        raise InvalidStore(f"Expected all fields in {path}, found a fault at {error}.") from None
