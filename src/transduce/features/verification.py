"""Check a store: hashes, counts, and rows that can be solved with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float16

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
from transduce.images.manifest import Manifest
from transduce.machine.atomic import sha256_of

CHANGED = "has changed since it was written (its hash differs)"
NORM_TOLERANCE = 1e-2  # float16 rounds the norm of a unit vector by less than a thousandth


@dataclass(frozen=True, slots=True)
class StoreVerification:
    """What was checked, and everything that is wrong, each as a sentence."""

    shards: int
    rows: int
    problems: tuple[str, ...]


def verify_store(folder: str | Path) -> StoreVerification:
    """Read every byte of a store, or of the finished shards of an unfinished one."""
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
