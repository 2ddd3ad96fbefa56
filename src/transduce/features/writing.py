"""Write a feature store: each shard whole or absent, the summary last."""

import shutil
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float16

from transduce.errors import InvalidStore
from transduce.features.layout import (
    DUPLICATES,
    META,
    RECORDS,
    SKIPPED,
    Meta,
    Record,
    Shard,
    Skip,
    embeddings_name,
    is_whole,
    metadata_name,
    record_name,
)
from transduce.features.store import FeatureStore
from transduce.machine.atomic import (
    TEMPORARY,
    read_json,
    replace_array,
    replace_csv,
    replace_file,
    replace_json,
    sha256_of,
)


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept of an image beside its embedding."""

    file_name: str
    image_path: str
    sha256: str = ""
    width: int = 0
    height: int = 0
    converted: str = ""


def write_shard(
    folder: Path,
    index: int,
    embeddings: Float16[np.ndarray, "row feature"],
    rows: Sequence[Row],
) -> Shard:
    """Write the two files of a shard."""
    replace_array(folder / embeddings_name(index), embeddings)
    _write_rows(folder / metadata_name(index), rows)
    return Shard(
        index=index,
        rows=len(rows),
        embeddings_sha256=sha256_of(folder / embeddings_name(index)),
        metadata_sha256=sha256_of(folder / metadata_name(index)),
    )


def write_record(folder: Path, shard: Shard, skipped: Sequence[Skip]) -> None:
    """Declare a shard finished. Until this file is there, the shard is made again."""
    path = folder / record_name(shard.index)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_json(path, Record(shard, tuple(skipped)))


def read_record(folder: Path, index: int) -> tuple[Shard, tuple[Skip, ...]] | None:
    """Return the record of a finished shard; None where a file of it is missing or damaged."""
    try:
        record = read_json(folder / record_name(index), Record, error=InvalidStore)
    except InvalidStore:
        return None
    shard = record.shard
    whole = shard.index == index and all(
        is_whole(folder / name, digest)
        for name, digest in (
            (embeddings_name(index), shard.embeddings_sha256),
            (metadata_name(index), shard.metadata_sha256),
        )
    )
    return (shard, record.skipped) if whole else None


def write_meta(folder: Path, meta: Meta) -> None:
    """Write `meta.json`."""
    replace_json(folder / META, meta.to_json())


def finish(folder: Path, meta: Meta, shards: Sequence[Shard], skipped: Sequence[Skip]) -> Meta:
    """Write the lists and the complete `meta.json`; from here on the store can be opened."""
    replace_csv(folder / SKIPPED, Skip.__slots__, (astuple(skip) for skip in skipped))
    complete = replace(
        meta,
        complete=True,
        rows=sum(shard.rows for shard in shards),
        skipped=len(skipped),
        shards=tuple(shards),
    )
    same = _duplicates(FeatureStore(folder, complete))
    replace_csv(folder / DUPLICATES, ("file_name", "duplicate_of"), same)
    return seal(folder, replace(complete, duplicates=len(same)))


def seal(folder: Path, meta: Meta) -> Meta:
    """Write `meta.json` with the hashes of all files beside the shards; returns it."""
    files = {path.name: path for path in folder.iterdir() if path.is_file()}
    files |= {f"{RECORDS}/{path.name}": path for path in (folder / RECORDS).glob("*.json")}
    listed = sorted(name for name in files if name != META and not name.startswith("."))
    meta = replace(meta, files={name: sha256_of(files[name]) for name in listed})
    write_meta(folder, meta)
    return meta


def clear(folder: Path) -> None:
    """Remove what an earlier run left, as far as it is ours."""
    for name in ("img_emb", "metadata", "shards"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (META, SKIPPED, DUPLICATES):
        (folder / name).unlink(missing_ok=True)
    sweep(folder)


def sweep(folder: Path) -> None:
    """Remove temporary files of a killed run."""
    for parent in (folder, *(folder / name for name in ("img_emb", "metadata", "shards"))):
        for path in parent.glob(f".*{TEMPORARY}"):
            path.unlink()


def _duplicates(store: FeatureStore) -> list[tuple[str, str]]:
    if not store.meta.shards:
        return []
    pairs = zip(store.keys(), store.duplicates_of(), strict=True)
    return [(name, first) for name, first in pairs if first]


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    text, number = pa.string(), pa.int32()
    kinds = (text, text, text, number, number, text)
    schema = pa.schema(list(zip(Row.__slots__, kinds, strict=True)))
    columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in Row.__slots__}
    table = pa.table(columns, schema=schema)

    def write(temporary: Path) -> None:
        pq.write_table(table, temporary)

    replace_file(path, write)
