"""What a report shows, worked out once for all its forms: numbers, the best, significance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from transduce.benchmark.execute import Outcome
from transduce.benchmark.metrics import Comparison, compare
from transduce.benchmark.results import Result
from transduce.benchmark.suite import AVERAGE, Column, Row, Suite, Table

REFERENCE_METHOD = "zero-shot"
MOST_PLACES = 12  # named in full


@dataclass(frozen=True)
class CellView:
    """Numbers as shown: accuracies and their intervals in %, times in seconds."""

    value: float | None = None
    interval: float | None = None
    paper: float | None = None
    best: bool = False
    tied: bool = False  # not significantly worse than the best, on the same tasks
    reason: str = ""
    result: Result | None = None


@dataclass(frozen=True)
class RowView:
    row: Row
    cells: tuple[CellView, ...]
    against: tuple[Comparison | None, ...] = ()  # plain zero-shot, on the same tasks


@dataclass(frozen=True)
class TableView:
    table: Table
    columns: tuple[Column, ...]
    heads: tuple[str, ...]  # of the columns; the average is the last
    rows: tuple[RowView, ...]
    reasons: tuple[str, ...]  # why places are empty, each once


@dataclass(frozen=True)
class ReportView:
    suite: Suite
    tables: tuple[TableView, ...]
    results: tuple[Result, ...]
    command: str

    @property
    def seconds(self) -> bool:
        return self.suite.measure == "seconds"


def report_view(suite: Suite, outcome: Outcome, command: str) -> ReportView:
    tables = tuple(_table(suite, table, outcome) for table in suite.tables)
    results = {cell.result.run.id: cell.result
               for table in tables for row in table.rows for cell in row.cells
               if cell.result is not None}  # fmt: skip
    return ReportView(suite, tables, tuple(results.values()), command)


def _table(suite: Suite, table: Table, outcome: Outcome) -> TableView:
    columns = suite.columns_of(table)
    cells = {(cell.row, cell.column.key): cell for cell in suite.cells() if cell.table == table}
    rows: dict[Row, list[CellView]] = {row: [] for row in suite.rows}
    for column in columns:
        found = [cells[row, column.key] for row in suite.rows]
        views = [
            _cell(suite, outcome.result_of(cell), cell.paper, outcome.reason_of(cell))
            for cell in found
        ]
        for row, view in zip(suite.rows, _marked(views, suite), strict=True):
            rows[row].append(view)
    heads = [column.label for column in columns]
    if suite.average:
        heads.append("Average")
        averages = [_average(row.paper.get(table.key, {}).get(AVERAGE), rows[row]) for row in rows]
        for row, view in zip(rows, _marked(averages, suite), strict=True):
            rows[row].append(view)
    shown = {row: views for row, views in rows.items() if _has_numbers(views)}
    return TableView(
        table,
        columns,
        tuple(heads),
        tuple(RowView(row, tuple(v), _against(suite, rows, row)) for row, v in shown.items()),
        _reasons(rows, columns),
    )


def _has_numbers(views: Sequence[CellView]) -> bool:
    return any(view.value is not None or view.paper is not None for view in views)


def _reasons(rows: Mapping[Row, Sequence[CellView]], columns: Sequence[Column]) -> tuple[str, ...]:
    """Each reason once, with the places it left empty."""
    places: dict[str, list[str]] = {}
    for row, views in rows.items():
        empty = [
            (view, column) for view, column in zip(views, columns, strict=False) if view.reason
        ]
        for view, column in empty:
            whole = len(empty) == len(columns) and len({one.reason for one, _ in empty}) == 1
            place = row.method if whole else f"{row.full_label} on {column.label}"
            named = places.setdefault(view.reason, [])
            if place not in named:
                named.append(place)
    return tuple(f"{_some(named)}: {reason}" for reason, named in places.items())


def _some(named: list[str]) -> str:
    more = len(named) - MOST_PLACES
    return ", ".join(named[:MOST_PLACES]) + (f" and {more} more" if more > 0 else "")


def _cell(suite: Suite, result: Result | None, paper: float | None, reason: str) -> CellView:
    if result is None:
        return CellView(paper=paper, reason=reason)
    if suite.measure == "seconds":
        return CellView(result.seconds, None, paper, result=result)
    return CellView(100 * result.accuracy, 100 * result.interval, paper, result=result)


def _average(paper: float | None, views: Sequence[CellView]) -> CellView:
    """Over datasets, each counted once; shown only if none is missing."""
    values = [view.value for view in views if view.value is not None]
    if len(values) < len(views) or not values:
        return CellView(paper=paper)
    intervals = [view.interval or 0.0 for view in views]
    spread = sum(interval**2 for interval in intervals) ** 0.5 / len(intervals)
    return CellView(sum(values) / len(values), spread, paper)


def _marked(views: list[CellView], suite: Suite) -> list[CellView]:
    """The best of a column, and those that the tasks do not tell from it."""
    values = [view.value for view in views if view.value is not None]
    if len(values) < 2:
        return views
    best = min(values) if suite.measure == "seconds" else max(values)
    first = next(view for view in views if view.value == best)
    return [
        replace(
            view,
            best=view.value == best,
            tied=suite.measure == "accuracy" and view.value != best and _tied(first, view),
        )
        for view in views
    ]


def _tied(best: CellView, other: CellView) -> bool:
    comparison = paired(best, other)
    return comparison is not None and not comparison.significant


def _against(
    suite: Suite, rows: Mapping[Row, Sequence[CellView]], row: Row
) -> tuple[Comparison | None, ...]:
    """Paired comparison with plain zero-shot, where the suite has it."""
    reference = next((one for one in rows if one.method == REFERENCE_METHOD), None)
    if reference is None or row is reference or suite.measure == "seconds":
        return ()
    return tuple(
        paired(mine, theirs) for mine, theirs in zip(rows[row], rows[reference], strict=True)
    )


def paired(first: CellView, second: CellView) -> Comparison | None:
    """Two places of one column compared task by task."""
    if first.result is None or second.result is None:
        return None
    return compare(first.result.records.accuracies, second.result.records.accuracies)
