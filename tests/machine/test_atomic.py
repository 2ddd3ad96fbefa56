from dataclasses import dataclass

import numpy as np
import pytest

from transduce.errors import InvalidFile, InvalidStore
from transduce.machine.atomic import (
    cell_text,
    read_json,
    replace_array,
    replace_csv,
    replace_file,
    replace_json,
    safe_cell,
)


@dataclass(frozen=True)
class Point:
    x: int
    y: tuple[float, ...] = ()


def test_cells_with_commas_quotes_and_nothing(tmp_path):
    replace_csv(tmp_path / "a.csv", ("name", "value"), [('a, "b"', None), ("é", 1.5)])
    assert (tmp_path / "a.csv").read_bytes() == 'name,value\n"a, ""b""",\né,1.5\n'.encode()


def test_an_array_in_a_new_folder(tmp_path):
    replace_array(tmp_path / "new" / "a.npy", np.eye(2, dtype=np.float16))
    np.testing.assert_array_equal(np.load(tmp_path / "new" / "a.npy"), np.eye(2))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.npy"]


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")

    def write(temporary):
        temporary.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replace_file(path, write)
    assert path.read_text() == "before"


def test_values_come_back_typed_or_are_refused_by_field(tmp_path):
    path = tmp_path / "a.json"
    replace_json(path, Point(1, (2.0, 3.5)))
    assert read_json(path, Point) == Point(1, (2.0, 3.5))
    replace_json(path, {"x": 1, "later": "a field of a later version"})
    assert read_json(path, Point) == Point(1)
    replace_json(path, {"x": "one"})
    with pytest.raises(InvalidStore, match="found `str` at `x`"):
        read_json(path, Point, error=InvalidStore)
    path.write_text("{")
    with pytest.raises(InvalidFile, match="Expected JSON"):
        read_json(path, Point)


@pytest.mark.parametrize(
    "text", ["=1", "+1-x", "-x", "@x", "\tx", "'=x", "''-y", "'", "x", "", "-1e5"]
)
def test_cells_are_safe_and_come_back(text):
    safe = safe_cell(text)
    assert cell_text(safe) == text
    assert safe == "-1e5" or safe[:1] not in tuple("=+-@\t")


def test_numbers_stay_numbers():
    assert [safe_cell(cell) for cell in (-1, -0.5, None, "-0.500000", "+3")] == [
        -1, -0.5, None, "-0.500000", "+3",
    ]  # fmt: skip
