"""Plots as SVG, written by hand: no plotting library, a few hundred bytes each.

Colors are classes of the page's style sheet, so that they follow its light and dark mode.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from markupsafe import Markup, escape

from transduce.labeling.evaluation import ReliabilityBin
from transduce.labeling.settings import UNKNOWN_LABEL
from transduce.labeling.trust.risk import PrefixTest

WIDTH, HEIGHT = 480, 240
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 12, 38
CELL = 26  # pixels of a cell of the confusion matrix
MOST_CELLS = 24  # a larger confusion matrix is unreadable; the list beside it says more


class Axes:
    """A plotting area with two ranges, and the pixel of each value."""

    def __init__(self, across: tuple[float, float], up: tuple[float, float]) -> None:
        self._across, self._up = across, up

    def x(self, value: float) -> float:
        """Return the horizontal pixel of a value."""
        low, high = self._across
        return round(LEFT + (value - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Return the vertical pixel of a value."""
        low, high = self._up
        return round(HEIGHT - BOTTOM - (value - low) / ((high - low) or 1) * self.height, 1)

    @property
    def height(self) -> float:
        """The pixels between the lower and the upper end."""
        return HEIGHT - TOP - BOTTOM

    def frame(self, across: Sequence[float], up: Sequence[float], names: tuple[str, str]) -> str:
        """Return the axes with their ticks, grid and names."""
        left, right, floor = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM)
        parts = [_line("axis", (left, floor), (right, floor))]
        for value in up:
            parts.append(_line("grid", (left, self.y(value)), (right, self.y(value))))
            parts.append(_text(LEFT - 7, self.y(value) + 4, axis_number(value), "end"))
        parts += [_text(self.x(v), HEIGHT - BOTTOM + 17, axis_number(v), "middle") for v in across]
        parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, names[0], "middle", "name"))
        middle = TOP + self.height / 2
        parts.append(
            f'<text class="name" text-anchor="middle" transform="translate(11 {middle}) '
            f'rotate(-90)">{escape(names[1])}</text>'
        )
        return "".join(parts)


def confidence(
    scores: Float[np.ndarray, " image"],
    sure: Float[np.ndarray, " sure"],
    zero_shot: Float[np.ndarray, " image"],
) -> Markup:
    """Draw how many images have which score: sure, to review, and zero-shot's as a line."""
    edges = np.linspace(0.0, 1.0, 21)
    every, certain, before = (
        np.histogram(np.clip(values, 0, 1), edges)[0] for values in (scores, sure, zero_shot)
    )
    most = max(1, int(every.max()), int(before.max()))
    axes = Axes((0, 1), (0, most))
    parts = [axes.frame([0, 0.25, 0.5, 0.75, 1], _steps(0, most, whole=True), ("score", "images"))]
    for low, high, count, sure_count in zip(edges, edges[1:], every, certain, strict=False):
        about = f"score {low:.2f} to {high:.2f}: {count:,} images, {count - sure_count:,} to review"
        where = f'x="{axes.x(low) + 1}" width="{axes.x(high) - axes.x(low) - 2:.1f}"'
        parts.append(f"<g><title>{about}</title>")
        parts.append(_bar(where, axes, 0, sure_count, "sure"))
        parts.append(_bar(where, axes, sure_count, count, "review") + "</g>")
    corners = [f"{axes.x(0)},{axes.y(0)}"]
    for low, high, count in zip(edges, edges[1:], before, strict=False):
        corners += [f"{axes.x(low)},{axes.y(count)}", f"{axes.x(high)},{axes.y(count)}"]
    corners.append(f"{axes.x(1)},{axes.y(0)}")
    parts.append(f'<polyline class="before" points="{" ".join(corners)}"/>')
    return _svg(parts, f"Histogram of the scores of {len(scores):,} images")


def convergence(objectives: Sequence[Sequence[float]]) -> Markup:
    """Draw the objective after each iteration; for more than one batch, above its last value."""
    curves = [list(curve) for curve in objectives if len(curve) > 1]
    if not curves:
        return Markup("")
    name = "objective"
    if len(curves) > 1:
        curves = [[value - curve[-1] for value in curve] for curve in curves]
        name = "above its end"
    low, high = min(map(min, curves)), max(map(max, curves))
    longest = max(map(len, curves))
    axes = Axes((1, longest), (low, high))
    ticks = _steps(low, high)
    parts = [axes.frame(_steps(1, longest, whole=True), ticks, ("iteration", name))]
    for curve in curves:
        points = " ".join(f"{axes.x(i)},{axes.y(v)}" for i, v in enumerate(curve, start=1))
        parts.append(f'<polyline class="curve" points="{points}"/>')
        if len(curves) == 1 and longest <= 40:
            parts += [
                f'<circle class="dot" cx="{axes.x(i)}" cy="{axes.y(v)}" r="3">'
                f"<title>iteration {i}: {axis_number(v)}</title></circle>"
                for i, v in enumerate(curve, start=1)
            ]
    return _svg(parts, f"{name} over {longest} iterations")


def risk_coverage(
    tests: Sequence[PrefixTest], *, error: float, certified: int, population: int
) -> Markup:
    """Draw the share of wrong labels among the most trusted, by how many of them are taken."""
    expected = [(test.size / population, test.expected_wrong / test.size) for test in tests]
    measured = [
        (test.size / population, test.wrong / test.audited) for test in tests if test.audited
    ]
    top = max([2 * error, *(share for _, share in expected[-1:] + measured[len(measured) // 4 :])])
    axes = Axes((0, 1), (0, min(1.0, top * 1.1)))
    ups = _steps(0, min(1.0, top * 1.1))
    names = ("share of the labels, most trusted first", "share that is wrong")
    parts = [axes.frame([0, 0.25, 0.5, 0.75, 1], ups, names)]
    if certified:
        edge = axes.x(certified / population)
        where = f'x="{axes.x(0)}" width="{edge - axes.x(0):.1f}"'
        parts.append(_bar(where, axes, 0, min(1.0, top * 1.1), "certified"))
        parts.append(_line("edge", (edge, axes.y(0)), (edge, TOP)))
    for kind, curve in (("before", expected), ("curve", measured)):
        points = " ".join(f"{axes.x(x)},{axes.y(min(y, min(1.0, top * 1.1)))}" for x, y in curve)
        parts.append(f'<polyline class="{kind}" points="{points}"/>')
    parts.append(_line("limit", (axes.x(0), axes.y(error)), (axes.x(1), axes.y(error))))
    return _svg(parts, "Risk and coverage: share of wrong labels among the most trusted")


def reliability(bins: Sequence[ReliabilityBin]) -> Markup:
    """Draw the share of right labels by score; a calibrated score lies on the diagonal."""
    axes = Axes((0, 1), (0, 1))
    ticks = [0, 0.25, 0.5, 0.75, 1]
    parts = [axes.frame(ticks, ticks, ("score", "share that is right"))]
    for entry in bins:
        if not entry.images:
            continue
        width = f"{axes.x(entry.high) - axes.x(entry.low) - 2:.1f}"
        where = f'x="{axes.x(entry.low) + 1}" width="{width}"'
        parts.append(
            f"<g><title>{entry.images:,} images of mean score {entry.confidence:.2f}: "
            f"{entry.accuracy:.1%} right</title>"
            + _bar(where, axes, 0, entry.accuracy, "sure")
            + "</g>"
        )
    parts.append(_line("before", (axes.x(0), axes.y(0)), (axes.x(1), axes.y(1))))
    return _svg(parts, "Reliability diagram")


def confusion(counts: Sequence[Sequence[int]], names: Sequence[str]) -> Markup:
    """Draw truth x label for the classes that occur; empty if they are too many."""
    table: Int[np.ndarray, "class label"] = np.array(counts, dtype=int, ndmin=2)
    columns = [*names, UNKNOWN_LABEL][: table.shape[1]]
    rows: list[int] = np.flatnonzero(table.sum(1)).tolist()
    shown: list[int] = sorted({*rows, *np.flatnonzero(table.sum(0)).tolist()})
    if not 0 < len(shown) <= MOST_CELLS:
        return Markup("")
    margin = 14 + 7 * min(20, max(len(name) for name in columns))
    width, height = margin + CELL * len(shown) + margin // 2, margin + CELL * len(rows) + 4
    parts = []
    for across, column in enumerate(shown):
        x = margin + CELL * across + CELL / 2 + 4
        name = escape(_short(columns[column]))
        turned = f"translate({x} {margin - 6}) rotate(-55)"
        parts.append(f'<text class="label" transform="{turned}">{name}</text>')
    for down, row in enumerate(rows):
        y = margin + CELL * down
        parts.append(_text(margin - 6, y + 17, _short(names[row]), "end", "label"))
        for across, column in enumerate(shown):
            share = int(table[row, column]) / int(table[row].sum())
            title = f"{names[row]} labeled {columns[column]}: {table[row, column]:,}"
            kind = "right" if row == column else "wrong"
            corner = (margin + CELL * across, y)
            parts.append(_cell(int(table[row, column]), share, kind, title, corner))
    return Markup(
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="Confusion matrix, truth down, label across">{"".join(parts)}</svg>'
    )


def share_bar(before: int, after: int, sure: int, most: int) -> Markup:
    """Draw the two counts of a class as bars, for a row of a table."""
    scale = 118 / max(1, most)
    return Markup(
        f'<svg class="bar" viewBox="0 0 120 18" width="120" height="18" '
        f'preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="zero" y="2" width="{before * scale:.1f}" height="4"/>'
        f'<rect class="sure" y="8" width="{sure * scale:.1f}" height="8"/>'
        f'<rect class="review" x="{sure * scale:.1f}" y="8" '
        f'width="{(after - sure) * scale:.1f}" height="8"/></svg>'
    )


def axis_number(value: float) -> str:
    """Return a number short enough for an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (abs(value) >= size and letter != "k"):
            return f"{value / size:.4g}{letter}".replace("-", "−")
    small = f"{value:.4g}" if not value or abs(value) >= 1e-3 else f"{value:.1e}"
    return small.replace("-", "−")


def _cell(count: int, share: float, kind: str, title: str, corner: tuple[float, float]) -> str:
    """Draw a cell of the confusion matrix; `share` is of the images of its true class."""
    strength = 0.15 + 0.85 * share if count else 1.0
    x, y = corner
    ink = "count strong" if strength > 0.6 else "count"
    shown = _text(x + CELL / 2, y + 17, f"{count}", "middle", ink) if count else ""
    return (
        f"<g><title>{escape(title)}</title>"
        f'<rect class="{kind if count else "none"}" fill-opacity="{strength:.2f}" '
        f'x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" rx="2"/>{shown}</g>'
    )


def _line(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"/>'


def _svg(parts: Sequence[str], about: str) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(about)}">'
        f"{''.join(parts)}</svg>"
    )


def _bar(where: str, axes: Axes, low: float, high: float, kind: str) -> str:
    tall = axes.y(low) - axes.y(high)
    return f'<rect class="{kind}" {where} y="{axes.y(high)}" height="{tall:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= 20 else f"{name[:19]}…"


def _steps(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return about five round values from low to high."""
    rough = (high - low) / 5 or 1.0
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    step = max(1.0, step) if whole else step
    first = np.ceil(low / step) * step
    steps = [float(value) for value in np.arange(first, high + step * 1e-6, step)]
    return steps or [low]
