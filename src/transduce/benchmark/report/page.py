"""A report as one HTML page: no script, nothing loaded from elsewhere."""

from dataclasses import dataclass
from pathlib import Path

from transduce.benchmark.metrics import Comparison
from transduce.benchmark.report import tables
from transduce.benchmark.report.plots import figures
from transduce.benchmark.report.view import ReportView, RowView, TableView, paired
from transduce.errors import MissingExtra

TEMPLATE = Path(__file__).parent / "page.html.jinja"


@dataclass(frozen=True)
class Matrix:
    """All rows of one column against each other: by how much the row beats the column."""

    head: str
    labels: tuple[str, ...]
    comparisons: tuple[tuple[Comparison | None, ...], ...]


def page(report: ReportView) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    try:
        drawn, without = figures(report), ""
    except MissingExtra as error:
        drawn, without = [], str(error)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        report=report,
        figures=drawn,
        without_figures=without,
        matrices={view.table.key: matrices(view) for view in report.tables},
        tuned=_tuned(report),
        number=tables.number,
        duration=tables.duration,
        provenance=tables.provenance(report),
    )


def matrices(view: TableView) -> list[Matrix]:
    """One for each dataset with two finished rows or more."""
    found = []
    for place, column in enumerate(view.columns):
        rows = [row for row in view.rows if row.cells[place].result is not None]
        if len(rows) > 1:
            labels = tuple(row.row.full_label for row in rows)
            found.append(Matrix(column.label, labels, _all_pairs(rows, place)))
    return found


def _all_pairs(rows: list[RowView], place: int) -> tuple[tuple[Comparison | None, ...], ...]:
    return tuple(
        tuple(
            None if first is second else paired(first.cells[place], second.cells[place])
            for second in rows
        )
        for first in rows
    )


def _tuned(report: ReportView) -> list[tuple[str, str, str, str, str]]:
    """Where settings were tuned: method, dataset, shots, the choice, and on what."""
    found = []
    for result in report.results:
        if result.tuning is not None:
            tuning, run = result.tuning, result.run
            chosen = ", ".join(f"{name} = {value:g}" for name, value in tuning["chosen"].items())
            on = tuning.get("reason") or (
                f"best of {len(tuning['candidates'])} on {tuning['tasks']} {tuning['query_split']} "
                f"tasks, shots from {tuning['support_split']}"
            )
            where = f"{run.dataset}, {run.encoder}"
            name = f"{run.method}, {run.space}"
            found.append((name, where, f"{run.protocol.shots}", chosen, on))
    return found
