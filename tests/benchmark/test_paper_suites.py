"""The paper's suites from pictures to tables, on a miniature dataset drawn here."""

from dataclasses import replace

import pytest

from tests.benchmark.small_features import run_suite
from tests.benchmark.test_sources import draw_folder
from transduce.benchmark.report.page import suite_page
from transduce.benchmark.report.suite_report import report_suite
from transduce.benchmark.report.tables import markdown
from transduce.benchmark.sources import DataFolders, load_features
from transduce.benchmark.suite_files import load_suite

SLOW = {"alpha-tim", "tip-adapter"}  # their grids take a minute; other tests tune
SUITES = ("ablation", "mm-speed", "no-matching", "no-softmax", "query-size", "shots", "table-1",
          "table-2")  # fmt: skip


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    for split, pictures in {"train": 4, "val": 7, "test": 16}.items():
        draw_folder(folder / "things", [split], pictures, classes=11)
    name = f"folder:{folder / 'things'}"
    return load_features(name, "shapes", {"test"}, DataFolders(features=folder / "features"))


@pytest.mark.parametrize("name", SUITES)
def test_runs_from_pictures_to_a_report(name, features, tmp_path):
    suite = load_suite(name).on_datasets([features.name], "shapes")
    rows = tuple(row for row in suite.rows if row.method not in SLOW)
    suite = replace(suite, rows=rows, tasks=2)
    outcome = run_suite(suite, tmp_path, load_features=lambda *_: features)
    # Four pictures to train with are too few for 8 and 16 shots, and nothing else is missing.
    shots = {cell.table.protocol.shots for cell in suite.cells() if outcome.result_of(cell) is None
             and cell.row.method != "coop"}  # fmt: skip
    assert shots == ({8, 16} if name == "shots" else set())
    assert all("shots of each of 11 classes" in reason for reason in outcome.reasons.values())
    report = report_suite(suite, outcome, "transduce bench")
    assert markdown(report).count("\n## ") == len(suite.tables)
    assert ("<figcaption>Accuracy against" in suite_page(report)) == (suite.figure is not None)
