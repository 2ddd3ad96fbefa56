"""The single files of a run directory."""

import pytest

from transduce.errors import InvalidFile
from transduce.labeling.files import read_labeled


def test_a_csv_of_labels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('file_name,label\n"a, b.jpg",cat\nc.jpg, dog \n', encoding="utf-8-sig")
    assert read_labeled(path) == {"a, b.jpg": "cat", "c.jpg": "dog"}
    path.write_text("name,kind\nx,y\n")
    with pytest.raises(InvalidFile, match="found name, kind"):
        read_labeled(path)
    with pytest.raises(InvalidFile, match="check the path"):
        read_labeled(tmp_path / "none.csv")
