"""The single files of a run directory."""

from dataclasses import replace

import numpy as np
import pytest

from tests.labeling.stores import simulated_problem
from transduce.errors import InvalidFile
from transduce.labeling import files
from transduce.labeling.files import read_labeled
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.solving.solve import solve
from transduce.labeling.table import LabelTable, label_table


def test_a_csv_of_labels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('file_name,label\n"a, b.jpg",cat\nc.jpg, dog \n', encoding="utf-8-sig")
    assert read_labeled(path) == {"a, b.jpg": "cat", "c.jpg": "dog"}
    path.write_text("name,kind\nx,y\n")
    with pytest.raises(InvalidFile, match="found name, kind"):
        read_labeled(path)
    with pytest.raises(InvalidFile, match="check the path"):
        read_labeled(tmp_path / "none.csv")


def test_a_table_is_written_and_read_some_rows_at_a_time(tmp_path, monkeypatch):
    problem, _ = simulated_problem(tmp_path / "store", fixed={3: 5, 8: UNKNOWN}, min_score=0.5)
    classes = problem.settings.names
    solution = solve(problem, np.empty((60, len(classes)), np.float32))
    truth = np.where(np.arange(60) % 3, problem.truth, UNKNOWN)
    table = replace(label_table(problem, solution), truth=truth)
    certified = {
        "certified": np.arange(60) % 2 == 0,
        "classes": tuple(("a", "b") for _ in range(60)),
    }
    assert len(set(table.reason)) > 1
    written = []
    for size in (8192, 7):
        monkeypatch.setattr(files, "ROWS_AT_A_TIME", size)
        files.write_labels_csv(tmp_path / "labels.csv", table, classes, certified)
        files.write_labels_parquet(
            tmp_path / "labels.parquet", table, classes, solution.probabilities
        )
        written.append((tmp_path / "labels.csv").read_text())
        back = files.read_labels(tmp_path / "labels.parquet", classes)
        for name in LabelTable.__slots__:
            np.testing.assert_array_equal(getattr(back, name), getattr(table, name))
    assert written[0] == written[1]
    assert written[0].splitlines()[1].endswith("true,a; b")
