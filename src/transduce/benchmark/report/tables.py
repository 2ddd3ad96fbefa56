"""Tables of a suite's report as text: for the terminal, as Markdown, LaTeX and CSV."""

import csv
import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from transduce.benchmark.metrics import METRICS, Comparison
from transduce.benchmark.report.regimes import summary_tables
from transduce.benchmark.report.suite_report import ReportCell, ReportTable, SuiteReport
from transduce.benchmark.results import Result

LEGEND = (
    "Mean and 95 % interval over tasks. Best in bold; ≈ marks what a paired test over the same "
    "tasks (p >= 0.05) does not tell from the best. In brackets: the paper."
)
NONE = "-"


@dataclass(frozen=True)
class FurtherTable:
    """Another quantity of the runs of a table: a line (label, section, *values) for each row."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def further_tables(report: SuiteReport, table: ReportTable) -> list[FurtherTable]:
    """Return the table of times and one for each metric of the suite."""
    shown: dict[str, Callable[[Result], str]] = {}
    if not report.seconds:
        shown["Median time of a task"] = lambda result: duration(result.seconds)
    for name in report.suite.metrics:
        shown[METRICS[name].title] = partial(_metric_text, name)
    return [_further(title, table, show) for title, show in shown.items()]


def _further(title: str, table: ReportTable, show: Callable[[Result], str]) -> FurtherTable:
    """Return a table of the columns without the average."""
    columns = len(table.columns)
    lines = tuple(
        (
            row.row.label,
            row.row.section,
            *(NONE if c.result is None else show(c.result) for c in row.cells[:columns]),
        )
        for row in table.rows
        if any(cell.result is not None for cell in row.cells)
    )
    return FurtherTable(title, table.heads[:columns], lines)


def _metric_text(name: str, result: Result) -> str:
    value = result.metric(name)
    if value is None:
        return NONE
    return f"{100 * value:.1f}" if METRICS[name].percent else f"{value:.3g}"


def result_text(view: ReportCell, *, seconds: bool) -> str:
    """Return the number of a cell."""
    if view.value is None:
        return NONE
    return duration(view.value) if seconds else f"{view.value:.1f}"


def duration(seconds: float) -> str:
    """Return seconds with three digits, as s or ms."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def terminal(report: SuiteReport, width: int = 80) -> str:
    """Return the tables, or their summary, as wide as the terminal.

    Columns that do not fit go into further blocks.
    """
    parts = [report.suite.title]
    for summary in summary_tables(report):
        parts += ["", *textwrap.wrap(summary.title, width)]
        names, *values = zip(summary.heads, *summary.lines, strict=True)
        parts += _blocks(names, values, width)
    if report.suite.summary:  # every cell is in the other forms
        return "\n".join(parts)
    for view in report.tables:
        parts += ["", f"{view.table.title}, {report.suite.tasks_of(view.table):,} tasks a cell"]
        labels = [row.row.full_label for row in view.rows]
        columns = [
            [head, *(_plain(row.cells[index], report) for row in view.rows)]
            for index, head in enumerate(view.heads)
        ]
        parts += _blocks(["", *labels], columns, width)
        for reason in view.reasons:
            parts += textwrap.wrap(reason, width, initial_indent="  ", subsequent_indent="    ")
    if not report.seconds:
        parts += ["", "* best of a column  ~ not different by a paired test  [ ] the paper"]
    return "\n".join(parts)


def _plain(view: ReportCell, report: SuiteReport) -> str:
    mark = "*" if view.best else "~" if view.tied else " "
    text = result_text(view, seconds=report.seconds)
    if view.interval is not None:
        text += f" ±{view.interval:.1f}"
    text += mark
    if view.paper is not None:
        text += f" [{_paper(view, report)}]"
    return text


def _paper(view: ReportCell, report: SuiteReport) -> str:
    assert view.paper is not None
    return duration(view.paper) if report.seconds else f"{view.paper:.1f}"


def _blocks(labels: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> list[str]:
    first = max(map(len, labels)) + 2
    lines: list[str] = []
    block: list[Sequence[str]] = []

    def flush() -> None:
        if block:
            widths = [max(map(len, column)) for column in block]
            for index, label in enumerate(labels):
                cells = (c[index].rjust(w) for c, w in zip(block, widths, strict=True))
                lines.append(f"{label:<{first}}{'  '.join(cells)}".rstrip())
            block.clear()

    for column in columns:
        used = sum(max(map(len, other)) + 2 for other in [*block, column])
        if block and first + used - 2 > width:
            flush()
            lines.append("")
        block.append(column)
    flush()
    return lines


def markdown(report: SuiteReport) -> str:
    """Return the report as Markdown."""
    parts = [f"# {report.suite.title}", "", report.suite.note.strip(), ""]
    if not report.seconds:
        parts += [LEGEND, ""]
    for summary in summary_tables(report):
        parts += [f"## {summary.title}", "", _pipes(summary.heads, summary.lines), ""]
    for view in report.tables:
        parts += [f"## {view.table.title}", ""]
        rows = [
            [row.row.label, row.row.section, *(_marked_down(c, report) for c in row.cells)]
            for row in view.rows
        ]
        parts += [_pipes(["method", "features", *view.heads], rows), ""]
        parts += [f"- {reason}" for reason in view.reasons]
        parts += [""] * bool(view.reasons)
        for further in further_tables(report, view):
            lines = _pipes(["method", "features", *further.heads], further.lines)
            parts += [f"{further.title}:", "", lines, ""]
    parts += [f"Made by `{report.command}`; {provenance(report)}.", ""]
    return "\n".join(parts)


def _marked_down(view: ReportCell, report: SuiteReport) -> str:
    text = result_text(view, seconds=report.seconds)
    text = f"**{text}**" if view.best else f"≈ {text}" if view.tied else text
    if view.interval is not None:
        text += f" ± {view.interval:.1f}"
    return text + (f" [{_paper(view, report)}]" if view.paper is not None else "")


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in line] for line in [head, *rows]]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def latex(report: SuiteReport) -> str:
    """Return `booktabs` tables of LaTeX, to be included."""
    parts = [f"% {report.command}", "% needs \\usepackage{booktabs}"]
    for view in report.tables:
        parts += [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{_tex(report.suite.title)}: {_tex(view.table.title)}.}}",
            f"\\begin{{tabular}}{{ll{'c' * len(view.heads)}}}",
            "\\toprule",
            " & ".join(["Method", "Features", *map(_tex, view.heads)]) + " \\\\",
            "\\midrule",
        ]
        for row in view.rows:
            cells = [_in_latex(cell, report) for cell in row.cells]
            label, section = _tex(row.row.label), _tex(row.row.section)
            parts.append(" & ".join([label, section, *cells]) + " \\\\")
        parts += ["\\bottomrule", "\\end{tabular}", "\\end{table}", ""]
    return "\n".join(parts)


def _in_latex(view: ReportCell, report: SuiteReport) -> str:
    if view.value is None:
        text = "--"
    else:
        text = result_text(view, seconds=report.seconds)
        text = f"\\textbf{{{text}}}" if view.best else text
    if view.interval is not None:
        text += f"\\,{{\\scriptsize$\\pm${view.interval:.1f}}}"
    return text + (f" {{\\scriptsize[{_paper(view, report)}]}}" if view.paper is not None else "")


def _tex(text: str) -> str:
    replaced = {"α": "$\\alpha$", "≈": "$\\approx$"}
    special = {**{c: f"\\{c}" for c in "&%$#_{}"}, "\\": "\\textbackslash{}", **replaced}
    return "".join(special.get(character, character) for character in text)


CSV_HEAD = ("table", "method", "space", "label", "column", "dataset", "encoder", "tasks")


def as_csv(report: SuiteReport) -> str:
    """Return a line for each cell of each table, with all metrics that were recorded."""
    file = io.StringIO()
    metrics = [
        name
        for name in METRICS
        if name in report.suite.metrics
        or any(name in result.records.columns for result in report.results)
    ]
    names = [*CSV_HEAD, *_csv_line(ReportCell(), None, metrics)]
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    for view in report.tables:
        for row in view.rows:
            for index, column in enumerate(view.columns):
                values = (
                    view.table.key,
                    row.row.method,
                    row.row.space,
                    row.row.label,
                    column.key,
                    column.dataset,
                    column.encoder,
                    report.suite.tasks_of(view.table),
                )
                comparison = row.against[index] if row.against else None
                head = dict(zip(CSV_HEAD, values, strict=True))
                writer.writerow({**head, **_csv_line(row.cells[index], comparison, metrics)})
    return file.getvalue()


def _csv_line(
    cell: ReportCell, comparison: Comparison | None, metrics: Sequence[str]
) -> dict[str, object]:
    """Return the columns of a cell; those that it has no number for are empty."""
    result = cell.result
    measured = {} if result is None else _csv_numbers(result)
    settings = {} if result is None else result.provenance.settings
    empty = dict.fromkeys(["accuracy", "interval", *metrics, "seconds_per_task"], "")
    return {
        **empty,
        **measured,
        "paper": "" if cell.paper is None else cell.paper,
        "best": int(cell.best),
        "not_told_from_best": int(cell.tied),
        "settings": ";".join(f"{name}={value}" for name, value in settings.items()),
        "reason": cell.reason,
        "difference_to_zero_shot": f"{100 * comparison.difference:.3f}" if comparison else "",
        "p_value": f"{comparison.p_value:.3g}" if comparison else "",
    }


def _csv_numbers(result: Result) -> dict[str, float | str]:
    """Return accuracy and interval in %, the metrics that were recorded, and the time."""
    values = {name: result.metric(name) for name in METRICS}
    return {
        "accuracy": round(100 * result.accuracy, 3),
        "interval": "" if result.interval is None else round(100 * result.interval, 3),
        **{
            name: round(100 * value, 3) if METRICS[name].percent else value
            for name, value in values.items()
            if value is not None
        },
        "seconds_per_task": result.seconds,
    }


def provenance(report: SuiteReport) -> str:
    """Return seed, versions and machine, in words."""
    words = [f"seed {report.suite.seed}"]
    if report.results:
        first = report.results[0].provenance
        words += [f"{name} {value}" for name, value in first.versions.items()]
        words += [f"{name} {value}" for name, value in first.machine.items()]
    return ", ".join(words)
