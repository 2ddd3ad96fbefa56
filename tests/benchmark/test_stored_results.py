"""The committed results: all are read, found under their ids, and make the committed tables."""

import json
from pathlib import Path

import pytest

from transduce.benchmark.execute import stored_results
from transduce.benchmark.plan import plan_suite
from transduce.benchmark.report.regimes import summary_csv
from transduce.benchmark.report.suite_report import report_suite
from transduce.benchmark.report.tables import as_csv, markdown
from transduce.benchmark.results import ResultFolder
from transduce.benchmark.run import Run
from transduce.benchmark.suite_files import load_suite

RESULTS = Path(__file__).parents[2] / "results"
REAL = RESULTS / "real"


@pytest.fixture(scope="module")
def stored():
    return {path: json.loads(path.read_text()) for path in (REAL / "runs").glob("*.json")}


def test_every_result_is_read_under_its_id(stored):
    assert len(stored) >= 243
    folder = ResultFolder(REAL)
    for path, data in stored.items():
        run = Run.from_json(data["run"])
        assert run.id == path.stem
        assert run.to_json() == data["run"]
        result = folder.read(run)
        assert round(result.accuracy, 6) == data["accuracy"]
        assert round(result.interval, 6) == data["interval"]
        assert round(result.metric("mean_per_class_recall"), 6) == data["mean_per_class_recall"]
        assert result.provenance.settings == data["settings"]


def test_they_make_the_committed_tables(stored):
    """Rows of methods that came later are left out, as is the line that names the command."""
    methods = {data["run"]["method"] for data in stored.values()}
    suite = load_suite("real")
    tasks = {data["run"]["tasks"] for data in stored.values()}
    assert tasks == {suite.tasks}
    suite = suite.narrowed(methods=[row.method for row in suite.rows if row.method in methods])
    report = report_suite(suite, stored_results(plan_suite(suite), REAL), "")
    committed = (REAL / "tables.md").read_text().splitlines()
    made = markdown(report).splitlines()
    rows = [[line for line in text if line.startswith(("|", "#"))] for text in (made, committed)]
    assert rows[0] == rows[1]
    lines = [line for line in as_csv(report).splitlines() if ",needs " not in line]
    assert set(lines) <= set((REAL / "tables.csv").read_text().splitlines())


@pytest.mark.parametrize("name", ["regimes", "few-shot-regimes"])
def test_regimes_are_those_of_the_suite(name):
    """All runs of the suite are there, and make the committed tables."""
    folder, suite = RESULTS / name, load_suite(name)
    if not folder.exists():
        pytest.skip("not computed yet")
    outcome = stored_results(plan_suite(suite), folder)
    assert set(outcome.results) == {path.stem for path in (folder / "runs").glob("*.json")}
    report = report_suite(suite, outcome, "")
    assert summary_csv(report) == (folder / "summary.csv").read_text()
    committed = (folder / "tables.md").read_text().splitlines()
    rows = [
        [line for line in text if line.startswith(("|", "#"))]
        for text in (markdown(report).splitlines(), committed)
    ]
    assert rows[0] == rows[1]
