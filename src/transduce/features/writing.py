"""Writing a feature store: each shard whole or absent, the summary last."""

import csv
import io
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float16

from transduce.atomic import TEMPORARY, replace_file, replace_json, replace_text, sha256_of
from transduce.features.layout import (
    DUPLICATES,
    META,
    SKIPPED,
    Meta,
    Shard,
    Skip,
    embeddings_name,
    metadata_name,
    record_name,
)
from transduce.features.store import FeatureStore


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept of a picture beside its embedding."""

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
    """The two files of a shard."""
    _write_array(folder / embeddings_name(index), embeddings)
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
    replace_json(path, {"shard": asdict(shard), "skipped": [asdict(skip) for skip in skipped]})


def read_record(folder: Path, index: int) -> tuple[Shard, list[Skip]] | None:
    """The record of a finished shard whose files are still there."""
    if not (folder / embeddings_name(index)).is_file():
        return None
    if not (folder / metadata_name(index)).is_file():
        return None
    try:
        found = json.loads((folder / record_name(index)).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Shard(**found["shard"]), [Skip(**skip) for skip in found["skipped"]]


def write_meta(folder: Path, meta: Meta) -> None:
    replace_json(folder / META, meta.to_json())


def finish(folder: Path, meta: Meta, shards: Sequence[Shard], skipped: Sequence[Skip]) -> Meta:
    """Write the lists and the complete `meta.json`; from here on the store can be opened."""
    replace_text(folder / SKIPPED, _csv(Skip.__slots__, (asdict(skip) for skip in skipped)))
    complete = replace(
        meta,
        complete=True,
        rows=sum(shard.rows for shard in shards),
        skipped=len(skipped),
        shards=tuple(shards),
    )
    same = _duplicates(FeatureStore(folder, complete))
    replace_text(folder / DUPLICATES, _csv(("file_name", "duplicate_of"), same))
    complete = replace(complete, duplicates=len(same))
    write_meta(folder, complete)
    return complete


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


def _duplicates(store: FeatureStore) -> list[dict[str, Any]]:
    if not store.meta.shards:
        return []
    pairs = zip(store.keys(), store.duplicates_of(), strict=True)
    return [{"file_name": name, "duplicate_of": first} for name, first in pairs if first]


def _write_array(path: Path, array: Float16[np.ndarray, "row feature"]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:  # np.save would add .npy to the temporary name
            np.save(file, array, allow_pickle=False)

    replace_file(path, write)


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


def _csv(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
