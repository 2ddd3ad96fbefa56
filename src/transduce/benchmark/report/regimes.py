"""Summary of a suite whose tables are regimes: methods against regimes, averaged over columns.

The first row of the suite is the method in question: it is compared with its best rival in every
regime, and the cells in which it misses a mark are named.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median

import numpy as np

from transduce.benchmark.metrics import Z95
from transduce.benchmark.report.suite_report import REFERENCE_METHOD, SuiteReport
from transduce.benchmark.results import Result
from transduce.benchmark.suite import MethodRow

TOLERANCE = 0.5  # points that a cell may be below zero-shot, or below the best
NONE = "-"
CSV_HEAD = ("method", "regime", "cells", "accuracy", "difference_to_zero_shot", "calibration")

CellKey = tuple[str, str]  # keys of a table and of a column


@dataclass(frozen=True)
class SummaryTable:
    """A table of the summary; the first entry of each line is its name."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class MethodSummary:
    """A method over all cells; accuracies and calibration errors in %."""

    row: MethodRow
    results: Mapping[CellKey, Result]

    @cached_property
    def accuracy(self) -> dict[CellKey, float]:
        """Accuracy of each cell."""
        return {cell: 100 * result.accuracy for cell, result in self.results.items()}

    @cached_property
    def calibration(self) -> dict[CellKey, float]:
        """Expected calibration error of each cell that has one."""
        errors = {cell: result.metric("calibration") for cell, result in self.results.items()}
        return {cell: 100 * error for cell, error in errors.items() if error is not None}

    def minus(self, other: Mapping[CellKey, float]) -> dict[CellKey, float]:
        """Return the difference of accuracies on the cells of both."""
        return {cell: mine - other[cell] for cell, mine in self.accuracy.items() if cell in other}


@dataclass(frozen=True)
class Rivalry:
    """The first method against the best of the others in one regime, on the same tasks."""

    regime: str
    rival: str
    difference: float
    interval: float | None  # half the width of the 95 % interval; None for single tasks


class RegimeSummary:
    """All methods of a report over its regimes."""

    def __init__(self, report: SuiteReport) -> None:
        self.regimes = tuple(view.table.key for view in report.tables)
        self.titles = {view.table.key: view.table.title for view in report.tables}
        self.labels = {column.key: column.label for column in report.suite.columns}
        self.datasets = {column.key: column.dataset for column in report.suite.columns}
        results: dict[MethodRow, dict[CellKey, Result]] = {row: {} for row in report.suite.rows}
        for view in report.tables:
            for shown in view.rows:
                for column, cell in zip(view.columns, shown.cells, strict=False):
                    if cell.result is not None:
                        results[shown.row][view.table.key, column.key] = cell.result
        self.methods = [MethodSummary(row, cells) for row, cells in results.items() if cells]

    @cached_property
    def reference(self) -> dict[CellKey, float]:
        """Accuracy of zero-shot; empty if the suite is without."""
        rows = (method for method in self.methods if method.row.method == REFERENCE_METHOD)
        return next((method.accuracy for method in rows), {})

    @cached_property
    def best(self) -> dict[CellKey, MethodSummary]:
        """The most accurate method of each cell."""
        best: dict[CellKey, MethodSummary] = {}
        for method in self.methods:
            for cell, accuracy in method.accuracy.items():
                if cell not in best or accuracy > best[cell].accuracy[cell]:
                    best[cell] = method
        return best

    @cached_property
    def best_accuracy(self) -> dict[CellKey, float]:
        """The highest accuracy of each cell."""
        return {cell: method.accuracy[cell] for cell, method in self.best.items()}

    def by_regime(self, values: Mapping[CellKey, float]) -> list[float | None]:
        """Return the mean over the columns of each regime; None without any."""
        return [_mean(v for (key, _), v in values.items() if key == each) for each in self.regimes]

    def gains(self, method: MethodSummary) -> list[float | None]:
        """Return the difference to zero-shot in each regime."""
        return self.by_regime(method.minus(self.reference))

    def cell_name(self, cell: CellKey) -> str:
        """Return column and regime in words."""
        return f"{self.labels[cell[1]]}, {cell[0]}"

    @cached_property
    def rivalries(self) -> list[Rivalry]:
        """The first method against its best rival in each regime where both are."""
        if len(self.methods) < 2:
            return []
        return [found for regime in self.regimes if (found := self._rivalry(regime))]

    def _rivalry(self, regime: str) -> Rivalry | None:
        first, *others = self.methods
        cells = [cell for cell in first.results if cell[0] == regime]
        rivals = [other for other in others if cells and all(c in other.results for c in cells)]
        if not rivals:
            return None
        rival = max(rivals, key=lambda other: fmean(other.accuracy[cell] for cell in cells))
        gaps: dict[str, list[np.ndarray]] = {}  # columns of one dataset share their tasks
        for cell in cells:
            mine, theirs = (m.results[cell].records.accuracies for m in (first, rival))
            gaps.setdefault(self.datasets[cell[1]], []).append(np.subtract(mine, theirs))
        difference = fmean(float(gap.mean()) for group in gaps.values() for gap in group)
        variances = []
        for group in gaps.values():
            of_tasks = np.mean(group, axis=0)
            if len(of_tasks) < 2:
                return Rivalry(regime, rival.row.label, 100 * difference, None)
            share = len(group) / len(cells)
            variances.append(share**2 * float(of_tasks.var(ddof=1)) / len(of_tasks))
        interval = 100 * Z95 * sum(variances) ** 0.5
        return Rivalry(regime, rival.row.label, 100 * difference, interval)


def summary_tables(report: SuiteReport) -> list[SummaryTable]:
    """Return the tables of the summary, if the suite asks for one."""
    summary = RegimeSummary(report)
    if report.suite.summary != "regimes" or not summary.methods:
        return []
    first = summary.methods[0].row.label
    return [
        _regime_table(
            summary,
            "Accuracy, %: mean over the columns of each regime, and over all cells",
            {m.row.label: m.accuracy for m in summary.methods},
            "{:.1f}",
        ),
        _regime_table(
            summary,
            "Difference to zero-shot, points",
            {m.row.label: m.minus(summary.reference) for m in summary.methods},
            "{:+.1f}",
        ),
        _marks(summary),
        _regime_table(
            summary,
            "Expected calibration error, %: mean over columns, 15 bins, tasks of a cell pooled",
            {m.row.label: m.calibration for m in summary.methods if m.calibration},
            "{:.1f}",
        ),
        SummaryTable(
            f"{first} against its best rival in each regime, points, 95 % interval over tasks "
            "(columns of one dataset share their tasks and count as one)",
            ("regime", "best rival", "difference", "interval"),
            tuple(
                (r.regime, r.rival, f"{r.difference:+.2f}", _number(r.interval, "± {:.2f}"))
                for r in summary.rivalries
            ),
        ),
        _missed(summary),
    ]


def summary_csv(report: SuiteReport) -> str:
    """Return a line for each method and regime: means over columns."""
    summary = RegimeSummary(report)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_HEAD)
    for method in summary.methods:
        means = zip(
            summary.regimes,
            summary.by_regime(method.accuracy),
            summary.gains(method),
            summary.by_regime(method.calibration),
            strict=True,
        )
        for regime, accuracy, gain, error in means:
            cells = sum(key == regime for key, _ in method.results)
            numbers = [_number(value, "{:.3f}") for value in (accuracy, gain, error)]
            writer.writerow([method.row.label, regime, cells, *numbers])
    return file.getvalue()


def heat(gain: float | None) -> str:
    """Return the CSS of a difference to zero-shot: blue above, orange below, full at 15 points."""
    if gain is None:
        return ""
    strength = round(75 * min(1.0, abs(gain) / 15) ** 0.6)
    color = "--above" if gain > 0 else "--below"
    return f"background: color-mix(in srgb, var({color}) {strength}%, transparent)"


def _regime_table(
    summary: RegimeSummary, title: str, methods: Mapping[str, Mapping[CellKey, float]], form: str
) -> SummaryTable:
    lines = [
        (label, *(_number(v, form) for v in [*summary.by_regime(values), _mean(values.values())]))
        for label, values in methods.items()
    ]
    return SummaryTable(title, ("method", *summary.regimes, "all cells"), tuple(lines))


def _marks(summary: RegimeSummary) -> SummaryTable:
    """Return what each method does in single cells."""
    first = summary.methods[0]
    lines = []
    for method in summary.methods:
        gains, behind = method.minus(summary.reference), method.minus(summary.best_accuracy)
        below = sum(gain < -TOLERANCE for gain in gains.values())
        near = fmean(gap >= -TOLERANCE for gap in behind.values())
        ahead = _mean(first.minus(method.accuracy).values())
        seconds = median(result.seconds for result in method.results.values())
        lines.append(
            (
                method.row.label,
                str(len(method.results)),
                NONE if method is first else _number(ahead, "{:+.2f}"),
                f"{below} of {len(gains)}",
                _lowest(summary, gains),
                f"{100 * near:.0f} %",
                _lowest(summary, behind),
                f"{1000 * seconds:.3g} ms",
            )
        )
    heads = (
        "method",
        "cells",
        f"{first.row.label} ahead, same cells",
        f"more than {TOLERANCE} below zero-shot",
        "worst against zero-shot",
        f"within {TOLERANCE} of the best",
        "worst against the best",
        "median time",
    )
    return SummaryTable("Single cells", heads, tuple(lines))


def _missed(summary: RegimeSummary) -> SummaryTable:
    """Return the cells in which the first method misses a mark, the worst first."""
    first = summary.methods[0]
    gains, behind = first.minus(summary.reference), first.minus(summary.best_accuracy)
    missed = [
        cell for cell in behind if behind[cell] < -TOLERANCE or gains.get(cell, 0) < -TOLERANCE
    ]
    lines = tuple(
        (
            summary.cell_name(cell),
            f"{first.accuracy[cell]:.1f}",
            _number(gains.get(cell), "{:+.1f}"),
            f"{behind[cell]:+.1f}",
            summary.best[cell].row.label,
        )
        for cell in sorted(missed, key=behind.__getitem__)
    )
    return SummaryTable(
        f"Cells in which {first.row.label} is more than {TOLERANCE} below zero-shot or the best",
        ("cell", "accuracy", "against zero-shot", "against the best", "the best"),
        lines,
    )


def _lowest(summary: RegimeSummary, values: Mapping[CellKey, float]) -> str:
    if not values:
        return NONE
    cell = min(values, key=values.__getitem__)
    return f"{values[cell]:+.1f} ({summary.cell_name(cell)})"


def _mean(values: Iterable[float]) -> float | None:
    listed: Sequence[float] = list(values)
    return fmean(listed) if listed else None


def _number(value: float | None, form: str) -> str:
    return NONE if value is None else form.format(value)
