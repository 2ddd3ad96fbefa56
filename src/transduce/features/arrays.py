"""Arrays by name from .npz, .npy, .parquet and .pt files and clip-retrieval folders."""

import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from transduce.errors import InvalidStore, MissingExtra, refused_in_words
from transduce.machine.atomic import sha256_of

Arrays = dict[str, np.ndarray[Any, Any]]
EMBEDDINGS = "embeddings"  # what the array of a file without names is called
LARGE = 1 << 30  # bytes
MOST_GROWTH = 100  # of an archive, beyond which a large one is refused
PICKLES = (".pt", ".pth", ".pkl", ".plk", ".pickle")


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of a file or folder by name; columns of a table are arrays too."""
    if path.is_dir():
        return _clip_retrieval(path)
    readers = {".npz": _npz, ".npy": _npy, ".parquet": _parquet, **dict.fromkeys(PICKLES, _torch)}
    if path.suffix.lower() not in readers or not path.is_file():
        raise InvalidStore(
            "Expected features as a store, a clip-retrieval folder, .npz, .npy, .parquet or .pt, "
            f"found {path}{'' if path.exists() else ', which does not exist'}."
        )
    return readers[path.suffix.lower()](path)


def hash_of_arrays(path: Path) -> str:
    """Return the hash of a file, or of each array of a clip-retrieval folder."""
    if path.is_file():
        return sha256_of(path)
    return ",".join(sha256_of(file) for _, file in sorted(_numbered(path, "img_emb", ".npy")))


def _npz(path: Path) -> Arrays:
    with _reading("plain arrays", path):
        _refuse_bomb(path)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}


def _npy(path: Path) -> Arrays:
    with _reading("a plain array", path):
        return {EMBEDDINGS: np.load(path, allow_pickle=False)}


def _reading(what: str, path: Path) -> AbstractContextManager[None]:
    """Refuse a damaged file in words."""
    return refused_in_words(
        lambda reason: InvalidStore(f"Expected {what} in {path}, found {reason}.")
    )


def _refuse_bomb(path: Path) -> None:
    """Refuse an archive that is to become a thousand times larger when it is read."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > LARGE and size > MOST_GROWTH * path.stat().st_size:
        raise InvalidStore(
            f"Expected arrays in {path}, found {size:,} bytes in a file of "
            f"{path.stat().st_size:,}; write it again without compression if it is meant so."
        )


def _parquet(path: Path) -> Arrays:
    """Return columns of vectors as 2-D arrays, of text and numbers as 1-D; no others."""
    with _reading("a table", path):
        return _columns_of(path)


def _columns_of(path: Path) -> Arrays:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    arrays: Arrays = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if _is_list(column.type):
            arrays[name] = _vectors(path, column)
        elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            arrays[name] = column.to_numpy(zero_copy_only=False)
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            arrays[name] = np.array([str(value) for value in column.to_pylist()], np.str_)
    return arrays


def _is_list(kind: Any) -> bool:  # noqa: ANN401 - pyarrow is untyped
    import pyarrow.types as pt

    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def _vectors(path: Path, column: Any) -> np.ndarray:  # noqa: ANN401
    lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
    if column.null_count or len(lengths) != 1:
        raise InvalidStore(f"Expected vectors of one length in {path}, found lengths {lengths}.")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def _torch(path: Path) -> Arrays:
    try:
        import torch
    except ImportError:
        raise MissingExtra(f"Reading {path}", "torch") from None
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has several kinds for what it will not load
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InvalidStore(
            f"Expected tensors alone in {path}, found a pickle that torch does not load safely "
            f"({reason}). A pickle is a program: if you trust it, convert it with\n"
            "  import numpy, pickle\n"
            f"  data = pickle.load(open({str(path)!r}, 'rb'))\n"
            f"  numpy.savez({path.stem + '.npz'!r}, **{{k: numpy.asarray(v) for k, v in "
            "data.items()})"
        ) from None
    arrays: Arrays = {}
    with _reading("tensors", path):
        _flatten(value, "", arrays, _stored_bytes(path))
    return arrays


def _stored_bytes(path: Path) -> int:
    """Return how many bytes of numbers a file of torch can hold at most."""
    if not zipfile.is_zipfile(path):
        return path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def _flatten(value: Any, name: str, arrays: Arrays, most: int) -> None:  # noqa: ANN401 - any
    """Collect tensors and lists of plain values under dotted names.

    A tensor of more than `most` bytes repeats what is stored, or has numbers that were never
    written: torch lets a file say so.
    """
    if isinstance(value, Mapping):
        for key, part in value.items():
            _flatten(part, f"{name}.{key}" if name else str(key), arrays, most)
    elif hasattr(value, "detach"):
        tensor = value.detach()
        if tensor.numel() * tensor.element_size() > most:
            raise InvalidStore(
                f"Expected all numbers of {name or EMBEDDINGS!r} in the file, found shape "
                f"{tuple(tensor.shape)} in {most:,} bytes; save a copy: torch.save(x.clone(), ...)"
            )
        # NumPy has no bfloat16
        array = tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
        arrays[name or EMBEDDINGS] = array
    elif isinstance(value, list | tuple):
        if all(isinstance(part, str | int | float) for part in value):
            arrays[name or EMBEDDINGS] = np.array(value)
        else:
            for index, part in enumerate(value):
                _flatten(part, f"{name}.{index}" if name else str(index), arrays, most)


def _clip_retrieval(folder: Path) -> Arrays:
    files = dict(_numbered(folder, "img_emb", ".npy"))
    tables = dict(_numbered(folder, "metadata", ".parquet"))
    if not files:
        raise InvalidStore(
            f"Expected a feature store (meta.json) or a clip-retrieval folder "
            f"(img_emb/img_emb_0.npy), found neither in {folder}."
        )
    blocks = [_npy(files[number])[EMBEDDINGS] for number in sorted(files)]
    arrays: Arrays = {EMBEDDINGS: np.concatenate(blocks)}
    columns: list[Arrays] = []
    for number, block in zip(sorted(files), blocks, strict=True) if tables else ():
        if number not in tables:
            raise InvalidStore(f"Expected metadata for {files[number]}, found none; export again.")
        columns.append(_parquet(tables[number]))
        lengths = {len(column) for column in columns[-1].values()}
        if lengths - {len(block)}:
            raise InvalidStore(
                f"Expected as many rows in {tables[number]} as in {files[number]}, "
                f"found {max(lengths - {len(block)}):,} and {len(block):,}; export again."
            )
    for name in columns[0] if columns else ():
        arrays[name] = np.concatenate([part[name] for part in columns])
    return arrays


def _numbered(folder: Path, stem: str, suffix: str) -> Iterator[tuple[int, Path]]:
    for path in (folder / stem).glob(f"{stem}_*{suffix}"):
        match = re.fullmatch(rf"{stem}_(\d+)", path.stem)
        if match:
            yield int(match[1]), path
