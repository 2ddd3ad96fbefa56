import io
import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest

from transduce.errors import ForbiddenPickle, InvalidStore
from transduce.features.pickles import read_pickle

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def write(tmp_path, value, protocol=4):
    path = tmp_path / "features.plk"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_of_every_protocol(tmp_path, protocol):
    value = OrderedDict(
        features=ROWS, transposed=ROWS.T, labels=np.arange(4), flags=np.array([True, False]),
        big_endian=ROWS.astype(">f8"), names=np.array(["cat", "dog"]), count=np.int64(4),
    )  # fmt: skip
    found = read_pickle(write(tmp_path, value, protocol))
    assert set(found) == set(value)
    for name in value:
        np.testing.assert_array_equal(found[name], value[name])
        assert found[name].dtype == np.asarray(value[name]).dtype


def test_nested_values_get_dotted_names(tmp_path):
    value = {"train": (ROWS, [0, 1, 1, 0]), "test": {"x": ROWS + 1}, "title": "flowers"}
    found = read_pickle(write(tmp_path, value))
    assert set(found) == {"train.0", "train.1", "test.x", "title"}
    np.testing.assert_array_equal(found["train.1"], [0, 1, 1, 0])


def test_a_single_array(tmp_path):
    np.testing.assert_array_equal(read_pickle(write(tmp_path, ROWS))["array"], ROWS)


def test_tensors(tmp_path):
    import torch

    value = {
        "features": torch.tensor(ROWS).half(),
        "labels": torch.arange(4),
        "part": torch.tensor(ROWS)[1:, ::2],
    }
    plain = read_pickle(write(tmp_path, value))
    np.testing.assert_array_equal(plain["features"], ROWS)
    np.testing.assert_array_equal(plain["labels"], np.arange(4))
    np.testing.assert_array_equal(plain["part"], ROWS[1:, ::2])
    torch.save(value, tmp_path / "saved.plk")
    np.testing.assert_array_equal(read_pickle(tmp_path / "saved.plk")["part"], ROWS[1:, ::2])


class Runs:
    """Runs a command when it is unpickled, as an attack does."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_code_is_refused_by_name_and_not_run(tmp_path):
    mark = tmp_path / "was-run"
    with pytest.raises(ForbiddenPickle, match=r"found (posix|nt)\.system; nothing was run"):
        read_pickle(write(tmp_path, {"features": ROWS, "x": Runs(mark)}))
    assert not mark.exists()


def test_code_inside_a_torch_storage_or_file_is_refused(tmp_path):
    import torch

    mark = tmp_path / "was-run"

    class Storage:
        def __reduce__(self):
            return torch.storage._load_from_bytes, (pickle.dumps(Runs(mark)),)

    with pytest.raises((ForbiddenPickle, InvalidStore)):
        read_pickle(write(tmp_path, Storage()))
    torch.save({"x": Runs(mark)}, tmp_path / "saved.plk")
    with pytest.raises(ForbiddenPickle, match="Expected only tensors in the torch file"):
        read_pickle(tmp_path / "saved.plk")
    assert not mark.exists()


def call(module, name, *parts):
    """A pickle that calls module.name(*parts), written by hand."""
    out = io.BytesIO()
    out.write(b"c" + module.encode() + b"\n" + name.encode() + b"\n")
    for part in parts:
        inner = pickle.dumps(part, protocol=2)
        out.write(inner[2:-1])
    out.write({1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(parts)] + b"R.")
    return out.getvalue()


@pytest.mark.parametrize(
    ("module", "name", "parts"),
    [
        ("builtins", "eval", ("1+1",)),
        ("numpy", "load", ("x.npy",)),
        ("numpy", "fromfile", ("x",)),
        ("numpy.f2py.crackfortran", "myeval", ("1",)),
        ("_codecs", "encode", ("x", "zip")),
        ("numpy", "dtype", ("O",)),
        ("numpy", "dtype", ("V8",)),
    ],
)
def test_everything_else_is_refused(tmp_path, module, name, parts):
    path = tmp_path / "features.plk"
    path.write_bytes(call(module, name, *parts))
    with pytest.raises(ForbiddenPickle):
        read_pickle(path)


def test_arrays_of_objects_and_other_classes_are_refused(tmp_path):
    with pytest.raises(ForbiddenPickle, match="dtype 'O8'"):
        read_pickle(write(tmp_path, np.array([{}, ROWS], dtype=object)))
    with pytest.raises(ForbiddenPickle, match=r"found pathlib\."):
        read_pickle(write(tmp_path, {"path": tmp_path}))
    with pytest.raises(ForbiddenPickle, match="found NoneType at 'nothing'"):
        read_pickle(write(tmp_path, {"nothing": None}))


def test_damaged_and_missing_files(tmp_path):
    path = write(tmp_path, ROWS)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InvalidStore, match="Expected a pickle of arrays"):
        read_pickle(path)
    with pytest.raises(InvalidStore, match="No such file"):
        read_pickle(tmp_path / "gone.plk")
    with pytest.raises(InvalidStore, match="found none"):
        read_pickle(write(tmp_path, {}))
