"""The tables of a report as text: for the terminal, as Markdown, LaTeX and CSV."""

import csv
import io
import textwrap
from collections.abc import Callable, Sequence

from transduce.benchmark.report.view import CellView, ReportView, TableView

LEGEND = (
    "Mean and 95 % interval over tasks. Best in bold; ≈ marks what a paired test over the same "
    "tasks (p >= 0.05) does not tell from the best. In brackets: the paper."
)
NONE = "-"


def number(view: CellView, *, seconds: bool) -> str:
    if view.value is None:
        return NONE
    return duration(view.value) if seconds else f"{view.value:.1f}"


def duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def terminal(report: ReportView, width: int = 80) -> str:
    """As many columns beside each other as fit; the rest in further blocks."""
    parts = [report.suite.title]
    for view in report.tables:
        parts += ["", f"{view.table.title}, {report.suite.tasks:,} tasks a cell"]
        labels = [row.row.full_label for row in view.rows]
        columns = [
            [head, *(_plain(row.cells[place], report) for row in view.rows)]
            for place, head in enumerate(view.heads)
        ]
        parts += _blocks(["", *labels], columns, width)
        for reason in view.reasons:
            parts += textwrap.wrap(reason, width, initial_indent="  ", subsequent_indent="    ")
    if not report.seconds:
        parts += ["", "* best of a column  ~ not told from it by a paired test  [ ] the paper"]
    return "\n".join(parts)


def _plain(view: CellView, report: ReportView) -> str:
    mark = "*" if view.best else "~" if view.tied else " "
    text = number(view, seconds=report.seconds)
    if view.interval is not None:
        text += f" ±{view.interval:.1f}"
    text += mark
    if view.paper is not None:
        text += f" [{_paper(view, report)}]"
    return text


def _paper(view: CellView, report: ReportView) -> str:
    assert view.paper is not None
    return duration(view.paper) if report.seconds else f"{view.paper:.1f}"


def _blocks(labels: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> list[str]:
    first = max(map(len, labels)) + 2
    lines: list[str] = []
    block: list[Sequence[str]] = []

    def flush() -> None:
        if block:
            widths = [max(map(len, column)) for column in block]
            for place, label in enumerate(labels):
                cells = (c[place].rjust(w) for c, w in zip(block, widths, strict=True))
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


def markdown(report: ReportView) -> str:
    parts = [f"# {report.suite.title}", "", report.suite.note.strip(), ""]
    if not report.seconds:
        parts += [LEGEND, ""]
    for view in report.tables:
        parts += [f"## {view.table.title}", ""]
        rows = [
            [row.row.label, row.row.section, *(_marked_down(c, report) for c in row.cells)]
            for row in view.rows
        ]
        parts += [_pipes(["method", "features", *view.heads], rows), ""]
        parts += [f"- {reason}" for reason in view.reasons]
        parts += [""] * bool(view.reasons)
        if not report.seconds:
            parts += ["Median time of a task:", "", _times(view), ""]
    parts += [f"Made by `{report.command}`; {provenance(report)}.", ""]
    return "\n".join(parts)


def _marked_down(view: CellView, report: ReportView) -> str:
    text = number(view, seconds=report.seconds)
    text = f"**{text}**" if view.best else f"≈ {text}" if view.tied else text
    if view.interval is not None:
        text += f" ± {view.interval:.1f}"
    return text + (f" [{_paper(view, report)}]" if view.paper is not None else "")


def _times(view: TableView) -> str:
    """The columns without the average, which has no time."""
    rows = [
        [
            row.row.label,
            row.row.section,
            *(NONE if c.result is None else duration(c.result.seconds)
              for c in row.cells[: len(view.columns)]),
        ]
        for row in view.rows
        if any(cell.result is not None for cell in row.cells)
    ]  # fmt: skip
    return _pipes(["method", "features", *view.heads[: len(view.columns)]], rows)


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[one.replace("|", "\\|") for one in line] for line in [head, *rows]]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = [
        "| " + " | ".join(one.ljust(w) for one, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def latex(report: ReportView) -> str:
    """`booktabs` tables, ready to \\input."""
    parts = [f"% {report.command}", "% needs \\usepackage{booktabs}"]
    for view in report.tables:
        parts += [
            "\\begin{table}", "\\centering",
            f"\\caption{{{_tex(report.suite.title)}: {_tex(view.table.title)}.}}",
            f"\\begin{{tabular}}{{ll{'c' * len(view.heads)}}}", "\\toprule",
            " & ".join(["Method", "Features", *map(_tex, view.heads)]) + " \\\\", "\\midrule",
        ]  # fmt: skip
        for row in view.rows:
            cells = [_in_latex(cell, report) for cell in row.cells]
            label, section = _tex(row.row.label), _tex(row.row.section)
            parts.append(" & ".join([label, section, *cells]) + " \\\\")
        parts += ["\\bottomrule", "\\end{tabular}", "\\end{table}", ""]
    return "\n".join(parts)


def _in_latex(view: CellView, report: ReportView) -> str:
    if view.value is None:
        text = "--"
    else:
        text = number(view, seconds=report.seconds)
        text = f"\\textbf{{{text}}}" if view.best else text
    if view.interval is not None:
        text += f"\\,{{\\scriptsize$\\pm${view.interval:.1f}}}"
    return text + (f" {{\\scriptsize[{_paper(view, report)}]}}" if view.paper is not None else "")


def _tex(text: str) -> str:
    replaced = {"α": "$\\alpha$", "≈": "$\\approx$"}
    special = {**{c: f"\\{c}" for c in "&%$#_{}"}, "\\": "\\textbackslash{}", **replaced}
    return "".join(special.get(character, character) for character in text)


CSV_COLUMNS: dict[str, Callable[[CellView], object]] = {
    "accuracy": lambda c: "" if c.result is None else round(100 * c.result.accuracy, 3),
    "interval": lambda c: "" if c.result is None else round(100 * c.result.interval, 3),
    "mean_per_class_recall": lambda c: "" if c.result is None else round(100 * c.result.recall, 3),
    "seconds_per_task": lambda c: "" if c.result is None else c.result.seconds,
    "paper": lambda c: "" if c.paper is None else c.paper,
    "best": lambda c: int(c.best),
    "not_told_from_best": lambda c: int(c.tied),
    "settings": lambda c: "" if c.result is None else _settings(c),
    "reason": lambda c: c.reason,
}


def as_csv(report: ReportView) -> str:
    """A line for each place of each table."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    head = ["table", "method", "space", "label", "column", "dataset", "encoder", "tasks"]
    against = ["difference_to_zero_shot", "p_value"]
    writer.writerow([*head, *CSV_COLUMNS, *against])
    for view in report.tables:
        for row in view.rows:
            for place, column in enumerate(view.columns):
                cell = row.cells[place]
                comparison = row.against[place] if row.against else None
                paired = ["", ""]
                if comparison is not None:
                    paired = [
                        f"{100 * comparison.difference:.3f}", f"{comparison.p_value:.3g}"
                    ]  # fmt: skip
                writer.writerow(
                    [
                        view.table.key,
                        row.row.method,
                        row.row.space,
                        row.row.label,
                        column.key,
                        column.dataset,
                        column.encoder,
                        report.suite.tasks,
                        *(show(cell) for show in CSV_COLUMNS.values()),
                        *paired,
                    ]
                )
    return file.getvalue()


def _settings(view: CellView) -> str:
    assert view.result is not None
    return ";".join(f"{name}={value}" for name, value in view.result.settings.items())


def provenance(report: ReportView) -> str:
    """Seed, versions and machine, in words."""
    words = [f"seed {report.suite.seed}"]
    if report.results:
        first = report.results[0]
        words += [f"{name} {value}" for name, value in first.versions.items()]
        words += [f"{name} {value}" for name, value in first.machine.items()]
    return ", ".join(words)
