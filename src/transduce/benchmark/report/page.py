"""A suite's report as one HTML page: no script, nothing loaded from elsewhere."""

from dataclasses import dataclass
from pathlib import Path

from transduce.benchmark.metrics import Comparison
from transduce.benchmark.report import tables
from transduce.benchmark.report.plots import suite_figures
from transduce.benchmark.report.regimes import RegimeSummary, heat, summary_tables
from transduce.benchmark.report.suite_report import ReportRow, ReportTable, SuiteReport, paired
from transduce.errors import MissingExtra

TEMPLATE = Path(__file__).parent / "page.html.jinja"


@dataclass(frozen=True)
class Matrix:
    """All methods of one column compared with each other, row minus column, task by task."""

    head: str
    labels: tuple[str, ...]
    comparisons: tuple[tuple[Comparison | None, ...], ...]


def suite_page(report: SuiteReport) -> str:
    """Return the report as HTML; without figures, and with the reason, if matplotlib is missing."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    try:
        drawn, without = suite_figures(report), ""
    except MissingExtra as error:
        drawn, without = [], str(error)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        report=report,
        papers=any(
            cell.paper is not None
            for view in report.tables
            for row in view.rows
            for cell in row.cells
        ),
        summaries=summary_tables(report),
        regimes=RegimeSummary(report) if report.suite.summary == "regimes" else None,
        heat=heat,
        figures=drawn,
        without_figures=without,
        matrices={view.table.key: matrices(view) for view in report.tables},
        tuned=_tuned(report),
        further={view.table.key: tables.further_tables(report, view) for view in report.tables},
        cell_text=tables.result_text,
        duration=tables.duration,
        provenance=tables.provenance(report),
    )


def matrices(table: ReportTable) -> list[Matrix]:
    """Return a matrix for each dataset with two finished rows or more."""
    made = []
    for index, column in enumerate(table.columns):
        rows = [row for row in table.rows if row.cells[index].result is not None]
        if len(rows) > 1:
            labels = tuple(row.row.full_label for row in rows)
            made.append(Matrix(column.label, labels, _all_pairs(rows, index)))
    return made


def _all_pairs(rows: list[ReportRow], index: int) -> tuple[tuple[Comparison | None, ...], ...]:
    return tuple(
        tuple(
            None if first is second else paired(first.cells[index], second.cells[index])
            for second in rows
        )
        for first in rows
    )


def _tuned(report: SuiteReport) -> list[tuple[str, str, str, str, str]]:
    """Return a line for each tuned run: method, dataset, shots, the choice, and on what."""
    lines = []
    for result in report.results:
        if result.tuning is not None:
            tuning, run = result.tuning, result.run
            chosen = ", ".join(f"{name} = {value:g}" for name, value in tuning.chosen.items())
            on = tuning.reason or (
                f"best of {len(tuning.candidates)} on {tuning.tasks} {tuning.query_split} "
                f"tasks, shots from {tuning.support_split}"
            )
            where = f"{run.dataset}, {run.encoder}"
            name = f"{run.method}, {run.space}"
            lines.append((name, where, f"{run.protocol.shots}", chosen, on))
    return lines
