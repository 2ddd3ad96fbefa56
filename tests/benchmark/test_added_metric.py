"""What adding a metric costs: one function and one line; old results stay readable."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from tests.benchmark.small_features import run_suite, small_suite
from transduce.benchmark.evaluation import Records
from transduce.benchmark.execute import stored_results
from transduce.benchmark.metrics import METRICS, Metric
from transduce.benchmark.plan import plan_suite
from transduce.benchmark.report import tables
from transduce.benchmark.report.page import suite_page
from transduce.benchmark.report.suite_report import report_suite
from transduce.benchmark.suite_files import load_suite
from transduce.errors import UnknownName

BINS = 5


def calibration_bins(prediction, truth, task):
    """Return, for each bin of confidence, the sum of hits minus confidence, and the queries."""
    confidence = prediction.probabilities.max(1).astype(float)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, (prediction.labels == truth) - confidence, BINS)
    return (*gaps.tolist(), float(len(truth)))


def expected_calibration_error(values):
    pooled = np.asarray(values).sum(0)
    return float(np.abs(pooled[:-1]).sum() / pooled[-1])


@pytest.fixture
def added(monkeypatch):
    """The line in the catalogue."""
    metric = Metric(calibration_bins, "Calibration error, %", of_run=expected_calibration_error)
    monkeypatch.setitem(METRICS._entries, "ece", metric)


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Results computed before the metric was added, with the column names of then."""
    folder = tmp_path_factory.mktemp("old")
    run_suite(small_suite("zero-shot", tasks=30), folder)
    for path in (folder / "runs").iterdir():
        path.write_text(path.read_text().replace('"mean_per_class_recall":[', '"recall":['))
        assert "recall" in json.loads(path.read_text())["tasks"]
    return folder


def report_of(suite, folder):
    return report_suite(suite, stored_results(plan_suite(suite), folder), "transduce bench")


def test_it_is_recorded_pooled_and_shown(added, tmp_path):
    suite = replace(small_suite("zero-shot", tasks=30), metrics=("ece",))
    outcome = run_suite(suite, tmp_path)
    report = report_of(suite, tmp_path)
    result = report.results[0]
    assert outcome.results[result.run.id] == result  # as it is read back from its file
    bins = np.array(result.records.columns["ece"])
    assert bins.shape == (30, BINS + 1)
    expected = np.abs(bins[:, :-1].sum(0)).sum() / bins[:, -1].sum()
    assert result.metric("ece") == pytest.approx(expected)
    shown = f"{100 * result.metric('ece'):.1f}"
    markdown = tables.markdown(report)
    assert shown in markdown[markdown.index("Calibration error, %") :]
    assert "<summary>Calibration error, %" in suite_page(report)
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(report))))
    assert float(rows[0]["ece"]) == pytest.approx(100 * result.metric("ece"), abs=1e-3)


def test_an_old_result_is_read_and_has_no_such_number(added, old):
    suite = replace(small_suite("zero-shot", "hard-em-dirichlet", tasks=30), metrics=("ece",))
    report = report_of(suite, old)
    assert len(report.results) == 2
    assert report.results[0].metric("ece") is None
    assert 0 < report.results[0].metric("mean_per_class_recall") < 1
    lines = tables.further_tables(report, report.tables[0])[-1].lines
    assert lines[0][-1] == tables.NONE
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(report))))
    assert {row["ece"] for row in rows} == {""}


def test_old_and_new_parts_join_without_the_column(added):
    old = {"correct": (1,), "queries": (2,), "iterations": (3,), "seconds": (0.1,)}
    joined = Records.join([Records({**old, "ece": ((0.5, 1.0),)}), Records(old)])
    assert joined.columns == {name: 2 * values for name, values in old.items()}


def test_a_suite_names_metrics_that_exist(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "x"\nnote = ""\nmetrics = ["mean_per_class_recal"]\nmethods = "first"\n'
        'columns = [{ dataset = "a", encoder = "b" }]\n'
        'tables = [{ key = "t", title = "T", protocol = { name = "zero-shot" } }]'
    )
    with pytest.raises(UnknownName, match="did you mean 'mean_per_class_recall'"):
        load_suite(str(path))
