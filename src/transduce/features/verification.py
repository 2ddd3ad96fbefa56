"""Check a store: hashes, counts, and rows that can be solved with."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float16

from transduce.encoders.hub import DownloadBar, no_bar
from transduce.errors import InvalidStore
from transduce.features.layout import (
    MANIFEST,
    META,
    RECORDS,
    Meta,
    Shard,
    embeddings_name,
    is_whole,
    metadata_name,
    read_meta,
    record_name,
)
from transduce.features.store import BLOCK_ROWS
from transduce.features.writing import read_record
from transduce.images.entries import is_url
from transduce.images.manifest import Manifest
from transduce.machine.atomic import sha256_of

if TYPE_CHECKING:
    from transduce.features.fetching import Visit

CHANGED = "has changed since it was written (its hash differs)"
NORM_TOLERANCE = 1e-2  # float16 rounds the norm of a unit vector by less than a thousandth


@dataclass(frozen=True, slots=True)
class StoreVerification:
    """What was checked, and everything that is wrong, each as a sentence."""

    shards: int
    rows: int
    problems: tuple[str, ...]


def verify_store(folder: str | Path, *, bar: DownloadBar = no_bar) -> StoreVerification:
    """Read every byte of a store, or of the finished shards of an unfinished one.

    Of one behind a URL every byte is read where it is, shard by shard, whatever was fetched before;
    `bar` shows how far.
    """
    if is_url(folder):
        return _verify_remote(str(folder), bar)
    folder = Path(folder)
    try:
        meta = read_meta(folder)
    except InvalidStore as error:
        if not (folder / META).is_file():
            raise
        return StoreVerification(0, 0, (str(error),))
    problems: list[str] = []
    shards = meta.shards
    if not meta.complete:
        shards = finished_shards(folder)
        problems.append(
            f"unfinished: {len(shards):,} shards done; go on with: "
            f"transduce embed {meta.source} --out {folder}"
        )
    rows = 0
    for shard in shards:
        rows += shard.rows
        problems += _shard_problems(folder, shard, meta)
    if meta.complete:
        problems += _file_problems(folder, meta)
        problems += _record_problems(folder, meta)
    if meta.complete and not problems:
        problems += _count_problems(folder, meta, rows)
    return StoreVerification(len(shards), rows, tuple(problems))


def _verify_remote(url: str, bar: DownloadBar) -> StoreVerification:
    from transduce.features.fetching import visit_store

    visit = visit_store(url, bar)
    try:
        with visit as store:
            return _verify_visited(store, url)
    except InvalidStore as error:  # a meta.json that is not as it was written
        return StoreVerification(0, 0, (str(error),))


def _verify_visited(store: "Visit", url: str) -> StoreVerification:
    meta, problems = store.meta, list[str]()
    if not meta.complete:
        unfinished = f"unfinished: go on with transduce embed {meta.source} where {url} was made"
        return StoreVerification(0, 0, (f"{unfinished}, and copy it there once more",))
    for shard in meta.shards:
        with store.with_files([embeddings_name(shard.index), metadata_name(shard.index)]):
            problems += _shard_problems(store.folder, shard, meta)
    with store.with_files([*meta.files, *([] if MANIFEST in meta.files else [MANIFEST])]):
        problems += _file_problems(store.folder, meta)
        rows = sum(shard.rows for shard in meta.shards)
        if not problems:
            problems += _count_problems(store.folder, meta, rows)
    return StoreVerification(len(meta.shards), rows, tuple(problems))


def finished_shards(folder: Path) -> tuple[Shard, ...]:
    """Return the finished shards of a store that may be unfinished."""
    indices = sorted(int(path.stem) for path in (folder / RECORDS).glob("*.json"))
    records = (read_record(folder, index) for index in indices)
    return tuple(record[0] for record in records if record is not None)


def _file_problems(folder: Path, meta: Meta) -> list[str]:
    """Compare the lists and records with the hashes that were written last."""
    return [
        f"{name} {CHANGED if (folder / name).is_file() else 'is missing'}"
        for name, digest in meta.files.items()
        if not is_whole(folder / name, digest)
    ]


def _record_problems(folder: Path, meta: Meta) -> list[str]:
    """Compare the records with the shards of `meta.json`; stores of old versions have no more."""
    if not (folder / MANIFEST).is_file() or meta.files:
        return []
    records = {shard.index: read_record(folder, shard.index) for shard in meta.shards}
    return [
        f"{record_name(shard.index)} is missing or does not say what meta.json does"
        for shard in meta.shards
        if (record := records[shard.index]) is None or record[0] != shard
    ]


def _count_problems(folder: Path, meta: Meta, rows: int) -> list[str]:
    problems = []
    if rows != meta.rows:
        problems.append(f"meta.json counts {meta.rows:,} rows, its shards {rows:,}")
    if (folder / MANIFEST).exists():
        listed = len(Manifest(folder / MANIFEST))
        if listed != rows + meta.skipped:
            problems.append(
                f"the manifest lists {listed:,} images, but {rows:,} are embedded and "
                f"{meta.skipped:,} skipped"
            )
    return problems


def _shard_problems(folder: Path, shard: Shard, meta: Meta) -> list[str]:
    problems = []
    hashes = {
        embeddings_name(shard.index): shard.embeddings_sha256,
        metadata_name(shard.index): shard.metadata_sha256,
    }
    for name, expected in hashes.items():
        if not (folder / name).is_file():
            problems.append(f"{name} is missing")
        elif sha256_of(folder / name) != expected:
            problems.append(f"{name} {CHANGED}")
    if problems:
        return problems
    return _content_problems(folder, shard, meta.identity.dimension)


def _content_problems(folder: Path, shard: Shard, dimension: int) -> list[str]:
    import pyarrow.parquet as pq

    name = embeddings_name(shard.index)
    rows = np.load(folder / name, mmap_mode="r", allow_pickle=False)
    if rows.shape != (shard.rows, dimension):
        return [f"{name} has shape {rows.shape}, not {(shard.rows, dimension)}"]
    described = pq.read_metadata(folder / metadata_name(shard.index)).num_rows
    if described != shard.rows:
        return [f"{metadata_name(shard.index)} has {described:,} rows, not {shard.rows:,}"]
    return _number_problems(name, rows)


def _number_problems(name: str, rows: Float16[np.ndarray, "row feature"]) -> list[str]:
    not_finite, not_unit = 0, 0
    for start in range(0, len(rows), BLOCK_ROWS):
        norms = np.linalg.norm(np.asarray(rows[start : start + BLOCK_ROWS], np.float32), axis=1)
        finite = np.isfinite(norms)
        not_finite += int((~finite).sum())
        not_unit += int((np.abs(norms[finite] - 1.0) > NORM_TOLERANCE).sum())
    problems = []
    if not_finite:
        problems.append(f"{name} has {not_finite:,} rows with NaN or infinity")
    if not_unit:
        problems.append(f"{name} has {not_unit:,} rows that are not unit vectors")
    return problems
