"""Pickled features of published code, read without running anything they contain.

A pickle is a program. This reader knows the few words that rebuild plain arrays, and refuses
any other by name before it is looked up.
"""

import codecs
import io
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from transduce.errors import ForbiddenPickle, InvalidStore

Arrays = dict[str, np.ndarray[Any, Any]]

PLAIN_KINDS = "biufUS"  # numbers and text; an array of objects could hold anything


def read_pickle(path: str | Path) -> Arrays:
    """The arrays of a pickled dict, list or tuple (nested at will), under dotted names."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidStore(f"Expected a pickle at {path}, found {error.strerror}.") from None
    arrays: Arrays = {}
    _collect(_torch_file(data) if data[:2] == b"PK" else _load(data, path), "", arrays)
    if not arrays:
        raise InvalidStore(f"Expected arrays in {path}, found none.")
    return arrays


def _load(data: bytes, path: Path) -> object:
    try:
        return _ArrayUnpickler(io.BytesIO(data)).load()
    except ForbiddenPickle:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        raise InvalidStore(
            f"Expected a pickle of arrays in {path}, found {type(error).__name__}: {error}."
        ) from None


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - pickle's own signature
        allowed = _ALLOWED.get((module, name))
        if allowed is None:
            _refuse(f"{module}.{name}")
        return allowed

    def persistent_load(self, pid: object) -> NoReturn:
        _refuse(f"a persistent object ({pid!r})")


def _refuse(what: str) -> NoReturn:
    raise ForbiddenPickle(
        f"Expected only NumPy arrays and torch tensors in the pickle, found {what}; nothing was "
        "run. Save the arrays with numpy.savez where the file comes from."
    )


class _Dtype:
    """Stands for NumPy's dtype: keeps its name and byte order alone.

    The state in a crafted pickle could set flags and fields that make NumPy read wild memory.
    """

    def __init__(self, name: str, align: bool = False, copy: bool = False) -> None:
        self.plain = np.dtype(name)
        if self.plain.kind not in PLAIN_KINDS:
            _refuse(f"an array of dtype {name!r}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">"):
            self.plain = self.plain.newbyteorder(state[1])


class _Array:
    """Stands for NumPy's array, which is made from its bytes once they are read."""

    def __init__(self, kind: object, shape: object, dtype: object) -> None:
        if kind is not _ArrayKind:
            _refuse(f"a reconstruction of {kind!r}")
        self.array: np.ndarray[Any, Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, data = state
        self.array = _frombuffer(data, dtype, shape, "F" if fortran else "C").array


class _ArrayKind:
    """Stands for the class numpy.ndarray, which a pickle only mentions."""


def _frombuffer(data: bytes, dtype: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    made = _Array(_ArrayKind, (), None)
    flat = np.frombuffer(data, dtype.plain)
    made.array = flat.reshape(shape, order="F" if order == "F" else "C")
    return made


def _scalar(dtype: _Dtype, value: bytes) -> object:
    return np.frombuffer(value, dtype.plain)[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):  # the only one NumPy writes
        _refuse(f"_codecs.encode to {encoding!r}")
    return codecs.encode(text, "latin1")


def _torch_storage(data: bytes) -> object:
    """A storage inside a plain pickle of a tensor; torch's own restricted reader takes it."""
    return _torch_file(data)


def _torch_file(data: bytes) -> object:
    torch = _torch()
    try:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ForbiddenPickle(
            f"Expected only tensors in the torch file, found: {str(error).splitlines()[0]}"
        ) from None


def _rebuild_tensor(*parts: Any) -> Any:  # noqa: ANN401 - torch decides
    return _torch()._utils._rebuild_tensor_v2(*parts)


def _torch() -> Any:  # noqa: ANN401 - torch is optional
    try:
        import torch
    except ImportError:
        raise InvalidStore(
            "The pickle holds torch tensors, and torch is not installed: pip install torch"
        ) from None
    return torch


_ALLOWED: Mapping[tuple[str, str], Callable[..., Any] | type] = {
    **{
        (module, name): function
        for module in ("numpy.core.multiarray", "numpy._core.multiarray")
        for name, function in (("_reconstruct", _Array), ("scalar", _scalar))
    },
    **{
        (module, "_frombuffer"): _frombuffer
        for module in ("numpy.core.numeric", "numpy._core.numeric")
    },
    ("numpy", "ndarray"): _ArrayKind,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): OrderedDict,
    ("torch.storage", "_load_from_bytes"): _torch_storage,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
}


def _collect(value: object, name: str, arrays: Arrays) -> None:
    """Flatten dicts and sequences of arrays; plain numbers and text become small arrays."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _collect(item, f"{name}.{key}" if name else str(key), arrays)
    elif isinstance(value, list | tuple) and not _is_flat(value):
        for index, item in enumerate(value):
            _collect(item, f"{name}.{index}" if name else str(index), arrays)
    else:
        array = _as_array(value)
        if array.dtype.kind not in PLAIN_KINDS:
            _refuse(f"{type(value).__name__} at {name or 'the top'!r}")
        arrays[name or "array"] = array


def _is_flat(values: list[Any] | tuple[Any, ...]) -> bool:
    return bool(values) and all(isinstance(value, int | float | str) for value in values)


def _as_array(value: object) -> np.ndarray[Any, Any]:
    if isinstance(value, _Array):
        return value.array
    if type(value).__module__.partition(".")[0] == "torch":
        tensor: Any = value
        return np.asarray(tensor.detach().cpu().float().numpy() if tensor.is_floating_point()
                          else tensor.detach().cpu().numpy())  # fmt: skip
    return np.asarray(value)
