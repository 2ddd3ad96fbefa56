"""The illustrations of the paper's appendix, drawn from the library's own objects.

`python -m benchmarks.figures dirichlet [--alpha 10,5,5 ...]` draws Dirichlet densities on the
simplex of R^3; `python -m benchmarks.figures matching [--dataset NAME ...]` which class each
cluster of a zero-shot task was matched with.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from transduce.benchmark.episodes import ZeroShotProtocol, sample
from transduce.benchmark.sources import DataFolders, load_features
from transduce.errors import InvalidSetting, InvalidTask, MissingExtra
from transduce.methods import METHODS
from transduce.methods.matching import EMPTY, cluster_votes
from transduce.simplex.dirichlet import log_density
from transduce.task import Prediction, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Text stays text, and the same figure is the same file.
SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "transduce", "font.size": 9}
PAPER_ALPHAS = ((10.0, 5.0, 5.0), (0.975, 0.975, 3.0))
CORNERS = ((0.0, 0.0), (1.0, 0.0), (0.5, 0.75**0.5))
RESOLUTION = 150  # points along a side of the triangle
BRIGHTEST = 0.995  # of the points are below the top of the colors: a corner may have no bound
MATCHED, FAVORITE, OTHER = "#0b5cad", "#d9730d", "#8a8a8a"
FEWEST_VOTES = 0.03  # of an edge that is drawn
MOST_CLUSTERS = 40
FAVORITES = 2  # of each cluster, that are shown among the classes
NEAR = 0.12  # how far from its class the vote is written on an edge


def dirichlet_figure(alphas: Sequence[Sequence[float]]) -> "Figure":
    """Return the density of each Dirichlet on the simplex of R^3, side by side."""
    parameters = _three_positive(alphas)
    columns = min(4, len(parameters))
    rows = -(-len(parameters) // columns)
    figure = _figure(3.3 * columns, 2.7 * rows, layout="constrained")
    points, triangles = _grid(RESOLUTION)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, alpha in zip(panels, parameters, strict=False):
        density = np.exp(log_density(np.log(points), alpha[np.newaxis])[:, 0])
        _draw_density(panel, points @ np.array(CORNERS), triangles, density)
        panel.set_title("α = (" + ", ".join(f"{number:g}" for number in alpha) + ")", pad=14)
    for unused in panels[len(parameters) :]:
        unused.remove()
    return figure


def matching_figure(
    task: Task,
    prediction: Prediction,
    classes: Sequence[str],
    truth: Int[np.ndarray, " query"] | None = None,
) -> "Figure":
    """Return a graph of the classes that clusters were matched with, and what their images voted.

    An orange edge is a favorite that another cluster got: where the matching is not the argmax.
    """
    clusters, class_of_cluster = prediction.clusters, prediction.class_of_cluster
    if clusters is None or class_of_cluster is None:
        raise InvalidTask(
            "Expected a prediction of clusters matched with classes, found one without; choose a "
            "method that clusters, such as em-dirichlet."
        )
    numbers, votes = cluster_votes(clusters, task)
    if len(numbers) > MOST_CLUSTERS:
        raise InvalidSetting(
            f"Expected at most {MOST_CLUSTERS} clusters in one drawing, found {len(numbers)}; draw "
            "a task with fewer classes present."
        )
    matched = class_of_cluster[numbers]
    assert EMPTY not in matched
    shown = _classes_shown(votes, matched)
    rows = max(len(numbers), len(shown))
    figure = _figure(7.0, 1.0 + 0.34 * rows)
    panel = figure.subplots()
    left, right = _heights(len(numbers), rows), _heights(len(shown), rows)
    _draw_edges(panel, votes[:, shown], matched == shown[:, np.newaxis], left, right)
    for cluster, height in zip(numbers, left, strict=True):
        label = _cluster_label(clusters == cluster, classes, truth)
        panel.text(-0.03, height, label, ha="right", va="center")
    for index, height in zip(shown, right, strict=True):
        color = "black" if index in matched else OTHER
        panel.text(1.03, height, classes[index], ha="left", va="center", color=color)
    panel.set_ylim(0.4 - rows, 1.2)
    taken = bool((matched != votes.argmax(1)).any())
    _finish(panel, f"classes ({len(shown)} of {task.n_classes})", taken)
    return figure


def _classes_shown(
    votes: Float[np.ndarray, "cluster class"], matched: Int[np.ndarray, " cluster"]
) -> Int[np.ndarray, " shown"]:
    """Return matched classes, beside their cluster, and other favorites near their votes."""
    favorites = np.argsort(-votes, axis=1, kind="stable")[:, :FAVORITES]
    shown = np.union1d(matched, favorites)
    clusters = np.arange(len(votes))[:, np.newaxis]
    centers = (clusters * votes[:, shown]).sum(0) / np.maximum(votes[:, shown].sum(0), 1e-12)
    for cluster, label in enumerate(matched):
        centers[shown == label] = cluster
    return shown[np.argsort(centers, kind="stable")]


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure as SVG, or as what the name's ending says."""
    import matplotlib as mpl

    kind = path.suffix.lower().removeprefix(".") or "svg"
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise InvalidSetting(
            f"Expected a figure's name to end in one of {', '.join(sorted(known))}, found {path}."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if kind == "svg" else None
    with mpl.rc_context(SETTINGS):
        figure.savefig(path, format=kind, metadata=metadata, bbox_inches="tight", dpi=150)


def _figure(width: float, height: float, layout: Literal["constrained"] | None = None) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("Drawing figures", "report") from None
    return Figure(figsize=(width, height), layout=layout)


def _three_positive(alphas: Sequence[Sequence[float]]) -> Float[np.ndarray, "density 3"]:
    for alpha in alphas:
        if len(alpha) != 3 or not all(np.isfinite(number) and number > 0 for number in alpha):
            raise InvalidSetting(
                f"Expected three positive numbers, found {', '.join(map(str, alpha)) or 'none'}; "
                "a figure of the simplex of R^3 needs alpha such as 10,5,5."
            )
    if not alphas:
        raise InvalidSetting("Expected at least one alpha, found none; give one such as 10,5,5.")
    return np.array(alphas, dtype=np.float64)


def _grid(
    resolution: int,
) -> tuple[Float[np.ndarray, "point 3"], Int[np.ndarray, "triangle 3"]]:
    """Return points strictly inside the simplex, where densities are finite, and triangles."""
    first, second = np.meshgrid(np.arange(resolution), np.arange(resolution), indexing="ij")
    inside = first + second < resolution
    number = np.full((resolution, resolution), -1)
    number[inside] = np.arange(inside.sum())
    whole = np.stack([first[inside], second[inside]], 1) + 1.0 / 3.0
    share = whole / resolution
    points = np.column_stack([share, 1.0 - share.sum(1)])
    here, right, up = number[:-1, :-1], number[1:, :-1], number[:-1, 1:]
    upward = np.stack([here, right, up], -1)[inside[1:, :-1]]
    downward = np.stack([right, number[1:, 1:], up], -1)[inside[1:, 1:]]
    return points, np.concatenate([upward, downward])


def _draw_density(
    panel: "Axes",
    positions: Float[np.ndarray, "point 2"],
    triangles: Int[np.ndarray, "triangle 3"],
    density: Float[np.ndarray, " point"],
) -> None:
    from matplotlib.tri import Triangulation

    top = float(np.quantile(density, BRIGHTEST))
    colors = panel.tripcolor(
        Triangulation(positions[:, 0], positions[:, 1], triangles),
        density,
        shading="gouraud",
        cmap="viridis",
        vmin=0.0,
        vmax=top,
        rasterized=True,
    )
    bar = panel.figure.colorbar(colors, ax=panel, shrink=0.75, aspect=25)
    bar.set_label("density")
    bar.outline.set_visible(False)
    panel.plot(*np.array([*CORNERS, CORNERS[0]]).T, color="black", linewidth=0.8)
    panel.text(*CORNERS[0], " $z_1$ ", ha="right", va="top")
    panel.text(*CORNERS[1], " $z_2$ ", ha="left", va="top")
    panel.text(*CORNERS[2], " $z_3$ ", ha="center", va="bottom")
    panel.set_aspect("equal")
    panel.set_axis_off()


def _heights(count: int, rows: int) -> Float[np.ndarray, " item"]:
    """Return heights from the top down, in the middle of so many rows."""
    return -(np.arange(count) + (rows - count) / 2.0)


def _draw_edges(
    panel: "Axes",
    votes: Float[np.ndarray, "cluster shown"],
    matched: Bool[np.ndarray, "shown cluster"],
    left: Float[np.ndarray, " cluster"],
    right: Float[np.ndarray, " shown"],
) -> None:
    for cluster, row in enumerate(votes):
        for index, vote in enumerate(row):
            chosen, favorite = matched[index, cluster], index == row.argmax()
            if not chosen and not favorite and vote < FEWEST_VOTES:
                continue
            color = MATCHED if chosen else FAVORITE if favorite else OTHER
            panel.plot(
                [0.0, 1.0],
                [left[cluster], right[index]],
                color=color,
                linewidth=0.6 + 5.0 * vote,
                alpha=0.9 if chosen else 0.55,
                linestyle="-" if chosen or not favorite else "--",
                zorder=2.0 + chosen,
            )
            if chosen:
                height = right[index] + NEAR * (left[cluster] - right[index])
                panel.text(
                    1.0 - NEAR,
                    height,
                    f"{vote:.0%}",
                    color=color,
                    ha="center",
                    va="center",
                    fontsize=7,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                    zorder=3.5,
                )
    panel.scatter(np.zeros(len(left)), left, s=28, color="black", zorder=4)
    panel.scatter(np.ones(len(right)), right, s=28, color="white", edgecolor="black", zorder=4)


def _cluster_label(
    inside: Bool[np.ndarray, " query"],
    classes: Sequence[str],
    truth: Int[np.ndarray, " query"] | None,
) -> str:
    count = int(inside.sum())
    size = f"{count} image{'' if count == 1 else 's'}"
    if truth is None:
        return size
    labels, counts = np.unique(truth[inside], return_counts=True)
    most = int(counts.max())
    return f"{size}{'' if most == count else f', {most}'} of {classes[labels[counts.argmax()]]}"


def _finish(panel: "Axes", right_title: str, taken: bool) -> None:
    from matplotlib.lines import Line2D

    panel.text(0.0, 0.8, "clusters", ha="center", weight="bold")
    panel.text(1.0, 0.8, right_title, ha="center", weight="bold")
    lines = [Line2D([], [], color=MATCHED, linewidth=3, label="matched, with its vote")]
    if taken:
        label = "favorite that another cluster got"
        lines.append(Line2D([], [], color=FAVORITE, linewidth=2, linestyle="--", label=label))
    lines.append(Line2D([], [], color=OTHER, linewidth=1, label="other votes"))
    panel.legend(
        handles=lines, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False
    )
    panel.set_xlim(-0.05, 1.05)
    panel.set_axis_off()


def draw_dirichlet(alphas: Sequence[str], out: Path) -> None:
    """Draw the densities of texts such as 10,5,5."""
    save_figure(dirichlet_figure([_numbers(text) for text in alphas] or PAPER_ALPHAS), out)
    print(f"Wrote {out}")


def draw_matching(chosen: argparse.Namespace) -> None:
    """Draw the matching of one zero-shot task of a dataset."""
    method = METHODS[chosen.method]()
    features = load_features(chosen.dataset, chosen.encoder, {"test"}, DataFolders(chosen.data))
    few, many = min(3, features.n_classes), min(10, features.n_classes)
    protocol = ZeroShotProtocol(queries=chosen.queries, fewest=few, most=many)
    split = "all" if "all" in features.splits else "test"  # no shots are drawn from the others
    drawn = sample(
        features,
        protocol,
        chosen.episode,
        seed=chosen.seed,
        space=method.spaces[0],
        query_split=split,
    )
    prediction = method.predict(drawn.task)
    figure = matching_figure(drawn.task, prediction, features.classes, drawn.labels)
    save_figure(figure, chosen.out)
    right = float((prediction.labels == drawn.labels).mean())
    print(f"Wrote {chosen.out}  {chosen.method} labels {right:.0%} of the task right")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSetting(
            f"Expected numbers with commas between, such as 10,5,5, found {text!r}."
        ) from None


def main(arguments: list[str] | None = None) -> None:
    """Draw the figure that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    figures = parser.add_subparsers(dest="figure", required=True)
    dirichlet = figures.add_parser("dirichlet")
    dirichlet.add_argument("--alpha", action="append", default=[], metavar="A,B,C")
    dirichlet.add_argument("--out", type=Path, default=Path("dirichlet.svg"))
    matching = figures.add_parser("matching")
    matching.add_argument("--dataset", default="drawn:24", help="as for `transduce bench`")
    matching.add_argument("--encoder", default="shapes")
    matching.add_argument("--data", type=Path, help="where the datasets lie")
    matching.add_argument("--method", default="hard-em-dirichlet")
    matching.add_argument("--queries", type=int, default=75)
    matching.add_argument("--episode", type=int, default=0)
    matching.add_argument("--seed", type=int, default=0)
    matching.add_argument("--out", type=Path, default=Path("matching.svg"))
    chosen = parser.parse_args(arguments)
    if chosen.figure == "dirichlet":
        draw_dirichlet(chosen.alpha, chosen.out)
    else:
        draw_matching(chosen)


if __name__ == "__main__":
    main()
