"""Figures of a suite's report, as SVG text: accuracy along an axis, and time per task."""

import io
from typing import TYPE_CHECKING

from transduce.benchmark.report.suite_report import ReportTable, SuiteReport
from transduce.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*<>hd"
SETTINGS = {
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "transduce",
}


def suite_figures(report: SuiteReport) -> list[tuple[str, str]]:
    """Return titles and SVG drawings of the figures that the suite has numbers for."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtra("Drawing figures", "report") from None
    with mpl.rc_context(SETTINGS):
        return _figures(report)


def _figures(report: SuiteReport) -> list[tuple[str, str]]:
    figures = []
    if report.suite.figure is not None:
        drawn = _against_x(report)
        if drawn:
            figures.append((report.suite.figure.title, drawn))
    for view in report.tables:
        drawn = _speed(view)
        if drawn:
            figures.append((f"Time of a task, {view.table.title}", drawn))
    return figures


def _against_x(report: SuiteReport) -> str | None:
    """Draw a panel for each head, with a line for each row of two points or more."""
    figure_of = report.suite.figure
    assert figure_of is not None
    heads = list(dict.fromkeys(head for view in report.tables for head in view.heads))
    lines = {head: _lines(report, head) for head in heads}
    panels = [head for head in heads if lines[head]]
    if not panels:
        return None
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    labels = list(dict.fromkeys(label for head in panels for label in lines[head]))
    width = max(8.0, 4.0 * columns)
    in_legend = int(width // 3)
    figure = _figure(width, 3.1 * rows + 0.5 + 0.2 * -(-len(labels) // in_legend))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True).flat
    for panel, head in zip(axes, panels, strict=False):
        for label, (xs, ys, errors) in lines[head].items():
            style = labels.index(label)
            panel.errorbar(
                xs,
                ys,
                errors,
                label=label,
                linewidth=1,
                markersize=4,
                capsize=2,
                marker=MARKERS[style % len(MARKERS)],
                color=f"C{style % 10}",
                linestyle=("-", "--", ":")[style // 10 % 3],
            )
        panel.set(title=head, xlabel=figure_of.x_label, ylabel="accuracy, %")
        panel.grid(alpha=0.3)
    for unused in list(axes)[len(panels) :]:
        unused.set_visible(False)
    handles = {
        label: handle
        for panel in figure.axes
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles, loc="outside lower center", ncols=in_legend, frameon=False
    )
    return _svg(figure)


def _lines(report: SuiteReport, head: str) -> dict[str, tuple[list[float], ...]]:
    lines: dict[str, tuple[list[float], list[float], list[float]]] = {}
    for view in report.tables:
        if view.table.x is None or head not in view.heads:
            continue
        index = view.heads.index(head)
        for row in view.rows:
            cell = row.cells[index]
            if cell.value is not None:
                xs, ys, errors = lines.setdefault(row.row.full_label, ([], [], []))
                xs.append(view.table.x)
                ys.append(cell.value)
                errors.append(cell.interval or 0.0)
    return {label: line for label, line in lines.items() if len(line[0]) > 1}


def _speed(view: ReportTable) -> str | None:
    """Draw a bar for each row, the slowest below: the median over columns of the time of a task."""
    times: dict[str, float] = {}
    for row in view.rows:
        seconds = sorted(cell.result.seconds for cell in row.cells if cell.result is not None)
        if seconds:
            times[row.row.full_label] = 1000 * seconds[len(seconds) // 2]
    if not times:
        return None
    ordered = sorted(times.items(), key=lambda item: -item[1])
    figure = _figure(7.0, 0.8 + 0.22 * len(ordered))
    panel = figure.subplots()
    panel.barh([label for label, _ in ordered], [time for _, time in ordered], color="C0")
    panel.set_xscale("log")
    panel.set(xlabel="milliseconds a task, median (logarithmic)")
    panel.grid(axis="x", alpha=0.3)
    return _svg(figure)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _svg(figure: "Figure") -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return text[text.index("<svg") :]
