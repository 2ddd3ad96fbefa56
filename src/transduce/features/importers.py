"""Features made elsewhere: clip-retrieval folders, `.npz`, `.npy` and parquet files.

They carry no proof of their encoder. Say which one it was, and they get an identity in that name;
say nothing, and the identity is the file's own hash, so that they mix with nothing else.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32
from numpy.typing import ArrayLike

from transduce import validation
from transduce.atomic import sha256_of
from transduce.encoders.encoder import Identity
from transduce.errors import InvalidStore, InvalidTask, UnknownName
from transduce.features.layout import META, Meta, Settings, Shard
from transduce.features.planning import FEWEST_ROWS, lock
from transduce.features.store import FeatureStore
from transduce.features.writing import Row, finish, write_shard

if TYPE_CHECKING:
    import pyarrow as pa

KEY_NAMES = ("file_name", "image_path", "path", "key", "keys", "filename", "url", "id")
ARRAY_NAMES = ("embeddings", "embedding", "features", "image_features", "img_emb", "vectors")
SHARD_ROWS = 64 * FEWEST_ROWS


@dataclass(frozen=True, slots=True)
class Features:
    """Unit embeddings and the name of each row; `identity` pins the encoder."""

    keys: list[str]
    embeddings: Float32[np.ndarray, "row feature"]
    identity: Identity


def read_features(path: str | Path, *, encoder: str | None = None) -> Features:
    """Features from a store, a clip-retrieval folder, an .npz, .npy or parquet file."""
    path = Path(path)
    if (path / META).is_file():
        store = FeatureStore.open(path)
        return Features(store.keys(), store.embeddings(), store.identity)
    if path.is_dir():
        keys, rows = _clip_retrieval(path)
    else:
        readers = {".npz": _npz, ".npy": _npy, ".parquet": _parquet}
        if path.suffix.lower() not in readers or not path.is_file():
            raise InvalidStore(
                f"Expected features as a store, a clip-retrieval folder, .npz, .npy or .parquet, "
                f"found {path}{'' if path.exists() else ', which does not exist'}."
            )
        keys, rows = readers[path.suffix.lower()](path)
    return named(path, keys, rows, encoder=encoder)


def named(
    path: Path,
    keys: Sequence[str] | None,
    rows: ArrayLike,
    *,
    encoder: str | None,
) -> Features:
    """Check the numbers, bring rows to unit length, and settle the identity."""
    try:
        unit = validation.unit_rows(f"the features in {path}", rows).astype(np.float32, copy=False)
    except InvalidTask as error:
        raise InvalidStore(str(error)) from None
    if keys is None:
        keys = [f"{path.name}#{row}" for row in range(len(unit))]
    if len(keys) != len(unit):
        raise InvalidStore(
            f"Expected a name for each of {len(unit):,} rows in {path}, found {len(keys):,}."
        )
    dimension = unit.shape[1]
    if encoder is not None:
        identity = Identity(encoder, "as declared", "as declared", dimension)
    else:
        identity = Identity("unknown", f"imported:{_hash(path)}", "unknown", dimension)
    return Features([str(key) for key in keys], unit, identity)


def write_store(features: Features, out: str | Path, *, source: str = "") -> FeatureStore:
    """Keep imported features as a store of our own."""
    out = Path(out)
    if out.exists() and any(out.iterdir()):
        raise InvalidStore(f"Expected a new folder, found {out} with files in it; choose another.")
    with lock(out):
        shards: list[Shard] = []
        for start in range(0, len(features.keys), SHARD_ROWS):
            part = slice(start, start + SHARD_ROWS)
            rows = [Row(key, "") for key in features.keys[part]]
            block = features.embeddings[part].astype(np.float16)
            shards.append(write_shard(out, len(shards), block, rows))
        meta = Meta(features.identity, Settings(0, "unknown"), source=source)
        finish(out, meta, shards, [])
    return FeatureStore.open(out)


def write_npz(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """As `numpy.savez`, whose keywords clash with arrays called "file" or "allow_pickle"."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _clip_retrieval(folder: Path) -> tuple[list[str] | None, np.ndarray[Any, Any]]:
    import pyarrow.parquet as pq

    arrays = dict(_numbered(folder, "img_emb", ".npy"))
    tables = dict(_numbered(folder, "metadata", ".parquet"))
    if not arrays:
        raise InvalidStore(
            f"Expected a feature store (meta.json) or a clip-retrieval folder "
            f"(img_emb/img_emb_0.npy), found neither in {folder}."
        )
    rows = [np.load(arrays[number], allow_pickle=False) for number in sorted(arrays)]
    if not tables:
        return None, np.concatenate(rows)
    keys: list[str] = []
    for number, block in zip(sorted(arrays), rows, strict=True):
        if number not in tables:
            raise InvalidStore(f"Expected metadata for {arrays[number]}, found none; export again.")
        names = _names(tables[number], pq.read_table(tables[number]))
        if len(names) != len(block):
            raise InvalidStore(
                f"Expected as many rows in {tables[number]} as in {arrays[number]}, "
                f"found {len(names):,} and {len(block):,}; export again."
            )
        keys += names
    return keys, np.concatenate(rows)


def _numbered(folder: Path, stem: str, suffix: str) -> Iterator[tuple[int, Path]]:
    for path in (folder / stem).glob(f"{stem}_*{suffix}"):
        match = re.fullmatch(rf"{stem}_(\d+)", path.stem)
        if match:
            yield int(match[1]), path


def _names(path: Path, table: "pa.Table") -> list[str]:
    for name in KEY_NAMES:
        if name in table.column_names:
            return [str(value) for value in table[name].to_pylist()]
    raise InvalidStore(
        f"Expected one of the columns {', '.join(KEY_NAMES)} in {path}, found "
        f"{', '.join(table.column_names)}."
    )


def _npz(path: Path) -> tuple[list[str] | None, np.ndarray[Any, Any]]:
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError) as error:
        raise InvalidStore(f"Expected plain arrays in {path}, found {error}.") from None
    tables = {name: array for name, array in arrays.items() if array.ndim == 2}
    name = pick(path, list(tables))
    keys = next((arrays[key] for key in KEY_NAMES if key in arrays), None)
    return None if keys is None else [str(key) for key in keys], tables[name]


def _npy(path: Path) -> tuple[list[str] | None, np.ndarray[Any, Any]]:
    try:
        return None, np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidStore(f"Expected a plain array in {path}, found {error}.") from None


def _parquet(path: Path) -> tuple[list[str] | None, np.ndarray[Any, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InvalidStore(f"Expected a parquet file, found {path}: {error}.") from None
    lists = [field.name for field in table.schema if _is_list(field.type)]
    column = table[pick(path, lists)].combine_chunks()
    lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
    if column.null_count or len(lengths) != 1:
        raise InvalidStore(f"Expected vectors of one length in {path}, found lengths {lengths}.")
    rows = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    has_names = any(name in table.column_names for name in KEY_NAMES)
    return _names(path, table) if has_names else None, rows


def _is_list(kind: Any) -> bool:  # noqa: ANN401 - pyarrow is untyped
    import pyarrow.types as pt

    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def pick(path: Path, names: Sequence[str], wanted: str | None = None) -> str:
    """The table of embeddings: the wanted or only one, or the one with a well-known name."""
    if wanted is not None:
        if wanted not in names:
            raise UnknownName("table of embeddings", wanted, names)
        return wanted
    if len(names) == 1:
        return names[0]
    for name in ARRAY_NAMES:
        if name in names:
            return name
    raise InvalidStore(
        f"Expected a table of embeddings in {path} (one row per picture, best called "
        f"'embeddings'), found {', '.join(names) or 'none'}."
    )


def _hash(path: Path) -> str:
    if path.is_file():
        return sha256_of(path)
    return ",".join(sha256_of(file) for _, file in sorted(_numbered(path, "img_emb", ".npy")))
