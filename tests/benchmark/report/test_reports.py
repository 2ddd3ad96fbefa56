"""One small report in all its forms."""

import csv
import io
import re
from dataclasses import replace

import pytest

from tests.benchmark.small_features import run_suite, small_suite
from transduce.benchmark.report import tables
from transduce.benchmark.report.page import suite_page
from transduce.benchmark.report.suite_report import report_suite
from transduce.benchmark.suite import AVERAGE, Figure, MethodRow

METHODS = ("zero-shot", "em-gaussian-identity", "hard-em-dirichlet", "paddle", "coop")
COMMAND = "transduce bench small"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    suite = replace(
        small_suite(*METHODS, tasks=20, datasets=("one", "two")), average=True,
        figure=Figure("Accuracy against shots", "shots"),
    )  # fmt: skip
    paper = {"zero-shot": {"one": 12.3, AVERAGE: 45.6}}
    rows = (replace(suite.rows[0], label="a < b & <c>", paper=paper), *suite.rows[1:])
    suite = replace(suite, rows=rows)
    out = tmp_path_factory.mktemp("report")
    return suite, run_suite(suite, out)


@pytest.fixture(scope="module")
def report(made):
    return report_suite(*made, COMMAND)


def test_the_best_is_the_best_and_there_is_one_a_column(report):
    for view in report.tables:
        for place in range(len(view.heads)):
            cells = [row.cells[place] for row in view.rows if row.cells[place].value is not None]
            best = [cell for cell in cells if cell.best]
            assert {cell.value for cell in best} == {max(cell.value for cell in cells)}
            assert not any(cell.best and cell.tied for cell in cells)


def test_average_is_over_the_columns(report):
    first, second, average = report.tables[0].rows[0].cells
    assert average.value == pytest.approx((first.value + second.value) / 2)
    assert average.interval == pytest.approx((first.interval**2 + second.interval**2) ** 0.5 / 2)
    assert (first.paper, second.paper, average.paper) == (12.3, None, 45.6)


def test_rows_without_numbers_are_left_out_and_explained(report):
    methods = [row.row.method for row in report.tables[0].rows]
    assert methods == ["zero-shot", "em-gaussian-identity", "hard-em-dirichlet"]
    assert report.tables[0].reasons == ("paddle, coop: needs labeled shots",)
    assert any("text tower" in reason for reason in report.tables[1].reasons)


def test_terminal_keeps_to_its_width(report):
    text = tables.terminal(report, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "[12.3]" in text
    assert text.count("*") >= 6
    narrow = tables.terminal(report, 60)
    assert max(map(len, narrow.splitlines())) <= 70  # the closing legend is one line
    assert len(narrow.splitlines()) > len(text.splitlines())


def test_markdown_has_a_cell_for_every_column(report):
    text = tables.markdown(report)
    for line in (line for line in text.splitlines() if line.startswith("|")):
        assert line.count("|") in (6, 5)  # two words, two columns, and the average or not
    assert "**" in text
    assert COMMAND in text
    assert "seed 5" in text


def test_latex_is_escaped(report):
    text = tables.latex(report)
    assert "a < b \\& <c>" in text
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 2
    assert re.search(r"\\textbf\{\d+\.\d\}", text)


def test_csv_reads_back(report):
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(report))))
    done = [row for row in rows if row["accuracy"]]
    assert {row["dataset"] for row in rows} == {"one", "two"}
    assert all(0 <= float(row["accuracy"]) <= 100 for row in done)
    dirichlet = [row for row in done if row["method"] == "hard-em-dirichlet"]
    assert all(0 <= float(row["p_value"]) <= 1 for row in dirichlet)


def test_page_is_one_safe_file_with_figures(report):
    html = suite_page(report)
    assert "a &lt; b &amp; &lt;c&gt;" in html
    assert "<c>" not in html
    assert html.count("<svg") == 3  # accuracy against shots, time in both tables
    assert "<script" not in html
    assert not re.search(r'(src|href)="(?!#)', html)  # nothing from elsewhere
    assert "Chosen on validation images" in html


def test_page_without_matplotlib_says_how_to_get_it(report, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    html = suite_page(report)
    assert "<svg" not in html
    assert "transduce[report]" in html


def test_nothing_computed_is_a_report_too(made):
    from transduce.benchmark.execute import SuiteOutcome

    suite, _ = made
    empty = report_suite(suite, SuiteOutcome(), COMMAND)
    assert "[12.3]" in tables.terminal(empty)
    assert suite_page(empty)
    assert tables.latex(empty)
    assert tables.as_csv(empty)


def test_seconds_are_compared_downwards(made):
    suite, outcome = made
    rows = (MethodRow("z", "zero-shot"), MethodRow("h", "hard-em-dirichlet"))
    timed = replace(suite, measure="seconds", average=False, rows=rows)
    view = report_suite(timed, outcome, COMMAND).tables[0]
    values = {row.cells[0].value: row.cells[0].best for row in view.rows}
    assert len(values) == 2
    assert values[min(values)]
    assert not values[max(values)]
    assert " ms" in tables.terminal(report_suite(timed, outcome, COMMAND))
