"""The summary of methods against regimes, from a suite small enough to compute here."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from tests.benchmark.small_features import run_suite, small_features, small_suite
from transduce.benchmark.episodes.regimes import (
    FewShotRegimeProtocol,
    PerClassProtocol,
    RegimeProtocol,
)
from transduce.benchmark.report import tables
from transduce.benchmark.report.page import suite_page
from transduce.benchmark.report.regimes import RegimeSummary, heat, summary_csv, summary_tables
from transduce.benchmark.report.suite_report import report_suite
from transduce.benchmark.suite import Column, MethodRow, Table

ROWS = (
    MethodRow("anchored", "anchored", space="embedding"),
    MethodRow("zero-shot", "zero-shot", temperature=100.0),
    MethodRow("prior-shift", "prior-shift", space="embedding"),
    MethodRow("LaplacianShot", "laplacian-shot", tune=False),
)
TABLES = (
    Table("few", "Few classes", RegimeProtocol(queries=16, fewest=1, most=3), tasks=6),
    Table("many", "Too many classes", RegimeProtocol(queries=16, fewest=7, most=9)),
    Table("full", "Every image", PerClassProtocol()),
    Table("some", "Some shots", FewShotRegimeProtocol(shots=2, queries=20, share=0.5), tasks=3),
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    columns = tuple(Column(key, key.upper(), "small", key) for key in ("a", "b"))
    suite = replace(
        small_suite(tasks=2), rows=ROWS, tables=TABLES, columns=columns,
        metrics=("calibration",), summary="regimes",
    )  # fmt: skip
    out = tmp_path_factory.mktemp("regimes")
    outcome = run_suite(suite, out, load_features=lambda *_: small_features())
    return report_suite(suite, outcome, "transduce bench regimes")


def test_tables_have_their_own_number_of_tasks(report):
    counts = {result.run.protocol.name: len(result.records) for result in report.results}
    assert counts == {"regime": 6, "per-class": 1, "few-shot-regime": 3}
    suite = report.suite.with_tasks(9)
    assert [suite.tasks_of(table) for table in suite.tables] == [9, 9, 1, 9]


def test_a_single_task_has_no_interval(report):
    whole = report.tables[2].rows[0]
    assert whole.cells[0].value is not None
    assert whole.cells[0].interval is None
    assert whole.against == (None, None)


def test_what_cannot_be_computed_is_left_out_with_the_reason(report):
    assert report.tables[1].rows == ()
    assert "at least 7 classes" in report.tables[1].reasons[0]
    assert {row.row.label for row in report.tables[3].rows} == {
        "anchored", "zero-shot", "prior-shift",
    }  # fmt: skip
    assert any("laplacian-shot" in reason for reason in report.tables[3].reasons)


def test_means_and_differences_are_those_of_the_cells(report):
    summary = RegimeSummary(report)
    first, reference = summary.methods[:2]
    cells = [100 * row.cells[0].result.accuracy for row in report.tables[0].rows[:2]]
    assert first.accuracy["few", "a"] == pytest.approx(cells[0])
    assert summary.gains(first)[0] == pytest.approx(cells[0] - cells[1])  # columns are alike
    assert summary.gains(first)[1] is None
    assert summary.gains(reference)[0] == 0
    assert (
        max(method.accuracy["full", "a"] for method in summary.methods)
        == (summary.best_accuracy["full", "a"])
    )


def test_the_interval_counts_columns_of_one_dataset_once(report):
    summary = RegimeSummary(report)
    rivalry = summary.rivalries[0]
    rival = next(m for m in summary.methods if m.row.label == rivalry.rival)
    mine, theirs = (m.results["few", "a"].records.accuracies for m in (summary.methods[0], rival))
    gaps = 100 * np.subtract(mine, theirs)
    assert rivalry.difference == pytest.approx(gaps.mean())
    assert rivalry.interval == pytest.approx(1.96 * gaps.std(ddof=1) / 6**0.5, rel=1e-3)
    assert [r.interval for r in summary.rivalries if r.regime == "full"] == [None]


def test_all_forms_show_it(report):
    markdown, page = tables.markdown(report), suite_page(report)
    assert "Difference to zero-shot" in tables.terminal(report, 100)
    for table in summary_tables(report):
        assert f"## {table.title}" in markdown
        assert table.title.split(",")[0] in page
        assert {len(line) for line in table.lines} <= {len(table.heads)}
    assert 'class="heat"' in page
    rows = list(csv.DictReader(io.StringIO(summary_csv(report))))
    assert len(rows) == len(RegimeSummary(report).methods) * len(TABLES)
    assert 'class="heat"' not in suite_page(
        replace(report, suite=replace(report.suite, summary=""))
    )


def test_colors_grow_with_the_difference():
    assert heat(None) == ""
    assert "--above) 75%" in heat(40.0)
    assert "--below) 75%" in heat(-15.0)
    assert "--above) 0%" in heat(1e-9)
