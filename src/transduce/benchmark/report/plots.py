"""Figures of a suite's report, as SVG text: accuracy along an axis, and time per task."""

import io
from typing import TYPE_CHECKING

from transduce.benchmark.report.suite_report import ReportTable, SuiteReport
from transduce.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#010203"  # stands for the page's own color, light or dark
OTHERS = "#9aa3b0"
# Mid-tones that stand out on white and on black.
COLORS = ("#3b7dd8", "#e07b39", "#43a05a", "#cf4a64", "#8d67cc", "#18a3a3", "#bd931f")
HIGHLIGHTED = (
    "anchored",
    "zero-shot",
)  # whatever their rank: the default, and what it starts from
SETTINGS = {
    "svg.fonttype": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
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
    """Draw a panel for each head: the best rows and the default in color, all others in gray."""
    figure_of = report.suite.figure
    assert figure_of is not None
    heads = list(dict.fromkeys(head for view in report.tables for head in view.heads))
    lines = {head: _lines(report, head) for head in heads}
    panels = [head for head in heads if lines[head]]
    if not panels:
        return None
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    colors = _colors([lines[head] for head in panels])
    width = max(8.0, 4.0 * columns)
    figure = _figure(width, 3.4 * rows + 0.6)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True).flat
    for panel, head in zip(axes, panels, strict=False):
        for label in sorted(lines[head], key=lambda label: label in colors):
            xs, ys, _ = lines[head][label]
            order = sorted(range(len(xs)), key=lambda i: xs[i])
            if label in colors:
                style = {"color": colors[label], "linewidth": 2.0, "marker": "o", "markersize": 4}
            else:
                style = {"color": OTHERS, "linewidth": 0.7, "alpha": 0.55}
            at = [xs[i] for i in order], [ys[i] for i in order]
            panel.plot(*at, label=label if label in colors else "_", **style)
        panel.set(title=head, xlabel=figure_of.x_label, ylabel="accuracy, %")
        panel.set_ylim(bottom=_floor(lines[head], colors))
        panel.grid(alpha=0.25)
    for unused in list(axes)[len(panels) :]:
        unused.set_visible(False)
    handles = {
        label: handle
        for panel in figure.axes
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    handles = {label: handles[label] for label in colors if label in handles}
    figure.legend(
        handles.values(), handles, loc="outside lower center", ncols=min(4, len(handles) or 1),
        frameon=False,
    )  # fmt: skip
    return _svg(figure)


Lines = dict[str, tuple[list[float], ...]]


def _colors(panels: list[Lines]) -> dict[str, str]:
    """Return the color of the rows that stand out: the default, zero-shot, and the best."""
    ranks: dict[str, list[float]] = {}
    for lines in panels:
        for label, (_, ys, _) in lines.items():
            ranks.setdefault(label, []).append(sum(ys) / len(ys))
    means = {label: sum(values) / len(values) for label, values in ranks.items()}
    named = [label for label in means if label.split(",")[0].split(" (")[0] in HIGHLIGHTED]
    best = sorted(means, key=lambda label: -means[label])
    chosen = [*named, *(label for label in best if label not in named)][: len(COLORS)]
    return dict(zip(sorted(chosen, key=lambda label: -means[label]), COLORS, strict=False))


def _floor(lines: Lines, colors: dict[str, str]) -> float:
    """Return where the axis begins: a little below the lowest row that stands out."""
    low = min((min(ys) for label, (_, ys, _) in lines.items() if label in colors), default=0.0)
    return max(0.0, low - 12.0)


def _lines(report: SuiteReport, head: str) -> Lines:
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
    panel.barh([label for label, _ in ordered], [time for _, time in ordered], color=COLORS[0])
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
    return text[text.index("<svg") :].replace(INK, "currentColor")
