"""The contents of a suite's report, common to all its forms: numbers, the best, significance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from transduce.benchmark.execute import SuiteOutcome
from transduce.benchmark.metrics import Comparison, compare_paired
from transduce.benchmark.results import Result
from transduce.benchmark.suite import AVERAGE, Cell, Column, MethodRow, Suite, Table
from transduce.errors import some_of

REFERENCE_METHOD = "zero-shot"
MOST_CELLS_NAMED = 12  # of those that are empty for the same reason


@dataclass(frozen=True)
class ReportCell:
    """A cell as shown: accuracy and its interval in %, or time in seconds."""

    value: float | None = None
    interval: float | None = None  # half the width of the 95 % interval
    paper: float | None = None
    best: bool = False
    tied: bool = False  # not significantly worse than the best, on the same tasks
    reason: str = ""  # why there is no value
    result: Result | None = None  # None for an average


@dataclass(frozen=True)
class ReportRow:
    """A row as shown; `against` compares it with zero-shot on the same tasks."""

    row: MethodRow
    cells: tuple[ReportCell, ...]
    against: tuple[Comparison | None, ...] = ()


@dataclass(frozen=True)
class ReportTable:
    """A table as shown; the average, if there is one, is the last head.

    `reasons` are why cells are empty, each once.
    """

    table: Table
    columns: tuple[Column, ...]
    heads: tuple[str, ...]
    rows: tuple[ReportRow, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class SuiteReport:
    """A suite with its numbers; `command` is what computes them."""

    suite: Suite
    tables: tuple[ReportTable, ...]
    results: tuple[Result, ...]
    command: str

    @property
    def seconds(self) -> bool:
        """Whether the tables show times instead of accuracies."""
        return self.suite.measure == "seconds"


def report_suite(suite: Suite, outcome: SuiteOutcome, command: str) -> SuiteReport:
    """Return the contents of the report of a suite."""
    tables = tuple(_table(suite, table, outcome) for table in suite.tables)
    results = {
        cell.result.run.id: cell.result
        for table in tables
        for row in table.rows
        for cell in row.cells
        if cell.result is not None
    }
    return SuiteReport(suite, tables, tuple(results.values()), command)


def _table(suite: Suite, table: Table, outcome: SuiteOutcome) -> ReportTable:
    columns = suite.columns_of(table)
    cells = {(cell.row, cell.column.key): cell for cell in suite.cells() if cell.table == table}
    rows: dict[MethodRow, list[ReportCell]] = {row: [] for row in suite.rows}
    for column in columns:
        shown = [_cell(suite, outcome, cells[row, column.key]) for row in suite.rows]
        for row, cell in zip(suite.rows, _marked(shown, suite), strict=True):
            rows[row].append(cell)
    heads = [column.label for column in columns]
    if suite.average:
        heads.append("Average")
        averages = [_average(row.paper.get(table.key, {}).get(AVERAGE), rows[row]) for row in rows]
        for row, cell in zip(rows, _marked(averages, suite), strict=True):
            rows[row].append(cell)
    return ReportTable(
        table,
        columns,
        tuple(heads),
        tuple(
            ReportRow(row, tuple(shown), _against(suite, rows, row))
            for row, shown in rows.items()
            if _has_numbers(shown)
        ),
        _reasons(rows, columns),
    )


def _has_numbers(cells: Sequence[ReportCell]) -> bool:
    return any(cell.value is not None or cell.paper is not None for cell in cells)


def _reasons(
    rows: Mapping[MethodRow, Sequence[ReportCell]], columns: Sequence[Column]
) -> tuple[str, ...]:
    """Return each reason once, after the methods or cells that it left empty."""
    empty_for: dict[str, list[str]] = {}
    for row, cells in rows.items():
        pairs = zip(cells, columns, strict=False)  # the average comes last, without a reason
        empty = [(cell, column) for cell, column in pairs if cell.reason]
        whole = len(empty) == len(columns) and len({cell.reason for cell, _ in empty}) == 1
        for cell, column in empty:
            name = row.method if whole else f"{row.full_label} on {column.label}"
            names = empty_for.setdefault(cell.reason, [])
            if name not in names:
                names.append(name)
    return tuple(
        f"{some_of(names, MOST_CELLS_NAMED)}: {reason}" for reason, names in empty_for.items()
    )


def _cell(suite: Suite, outcome: SuiteOutcome, cell: Cell) -> ReportCell:
    result = outcome.result_of(cell)
    if result is None:
        return ReportCell(paper=cell.paper, reason=outcome.reason_of(cell))
    if suite.measure == "seconds":
        return ReportCell(result.seconds, None, cell.paper, result=result)
    interval = None if result.interval is None else 100 * result.interval
    return ReportCell(100 * result.accuracy, interval, cell.paper, result=result)


def _average(paper: float | None, cells: Sequence[ReportCell]) -> ReportCell:
    """Return the average over datasets, each counted once; empty if one is missing."""
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < len(cells) or not values:
        return ReportCell(paper=paper)
    intervals = [cell.interval or 0.0 for cell in cells]
    spread = sum(interval**2 for interval in intervals) ** 0.5 / len(intervals)
    return ReportCell(sum(values) / len(values), spread, paper)


def _marked(cells: list[ReportCell], suite: Suite) -> list[ReportCell]:
    """Return the cells of a column with the best, and those not significantly worse, marked."""
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2:
        return cells
    best = min(values) if suite.measure == "seconds" else max(values)
    first = next(cell for cell in cells if cell.value == best)
    return [
        replace(
            cell,
            best=cell.value == best,
            tied=suite.measure == "accuracy" and cell.value != best and _tied(first, cell),
        )
        for cell in cells
    ]


def _tied(best: ReportCell, other: ReportCell) -> bool:
    comparison = paired(best, other)
    return comparison is not None and not comparison.significant


def _against(
    suite: Suite, rows: Mapping[MethodRow, Sequence[ReportCell]], row: MethodRow
) -> tuple[Comparison | None, ...]:
    """Return paired comparisons with zero-shot, where the suite has it."""
    reference = next((other for other in rows if other.method == REFERENCE_METHOD), None)
    if reference is None or row is reference or suite.measure == "seconds":
        return ()
    return tuple(
        paired(mine, theirs) for mine, theirs in zip(rows[row], rows[reference], strict=True)
    )


def paired(first: ReportCell, second: ReportCell) -> Comparison | None:
    """Return two cells of one column compared task by task; None if one is empty or one task."""
    if first.result is None or second.result is None or len(first.result.records) < 2:
        return None
    return compare_paired(first.result.records.accuracies, second.result.records.accuracies)
