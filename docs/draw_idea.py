"""Draw docs/idea.svg, the figure of the first page, by `python docs/draw_idea.py`.

A batch of simulated images of three classes, as probabilities on the triangle. On the left each
image takes its largest probability; on the right EM-Dirichlet labels the batch jointly. The encoder
overrates the third class: one image cannot show that, the groups in the batch do.
"""

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transduce import EMDirichlet, Task

FIGURE = Path(__file__).with_name("idea.svg")
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
NAMES = ("cat", "dog", "fox")
COLORS = np.array(["#3b6fb6", "#d9730d", "#4f9a54"])
ALPHAS = np.array([[18.0, 5.0, 12.0], [5.0, 16.0, 13.0], [4.0, 5.0, 20.0]])  # one row a class
IMAGES_OF_EACH = 60


def batch(seed: int) -> tuple[Task, np.ndarray]:
    """Return a task of images of the three classes, and their true classes."""
    generator = np.random.default_rng(seed)
    rows = np.concatenate([generator.dirichlet(alpha, IMAGES_OF_EACH) for alpha in ALPHAS])
    return Task(query=rows, zero_shot=rows), np.repeat(np.arange(len(ALPHAS)), IMAGES_OF_EACH)


def draw_panel(panel: Axes, rows: np.ndarray, labels: np.ndarray, truth: np.ndarray) -> None:
    """Draw the triangle, a dot for each right label and a cross for each wrong one."""
    points, right = rows @ CORNERS, labels == truth
    outline = CORNERS[[0, 1, 2, 0]]
    panel.plot(*outline.T, color="#8a8a8a", linewidth=1)
    panel.scatter(*points[right].T, c=COLORS[labels[right]], s=14, linewidths=0)
    panel.scatter(*points[~right].T, c=COLORS[labels[~right]], s=34, marker="x", linewidths=1.6)
    for name, corner, color, side in zip(
        NAMES, CORNERS, COLORS, ("right", "left", "center"), strict=True
    ):
        lift = 0.03 if side == "center" else -0.06
        panel.text(corner[0], corner[1] + lift, name, color=color, ha=side, weight="bold")
    panel.set_aspect("equal")
    panel.axis("off")


def draw_boundaries(panel: Axes, probabilities: Callable[[np.ndarray], np.ndarray]) -> None:
    """Draw where the classes meet."""
    shares = np.linspace(0.002, 0.996, 240)
    first, second = np.meshgrid(shares, shares)
    grid = np.stack([first, second, np.maximum(1 - first - second, 1e-6)], -1)
    grid /= grid.sum(-1, keepdims=True)
    classes = probabilities(grid.reshape(-1, 3)).argmax(1).reshape(first.shape)
    points = grid @ CORNERS
    for k in range(len(NAMES)):
        of_class = np.ma.array(classes == k, float, mask=first + second > 1)
        style = {"levels": [0.5], "colors": "#8a8a8a", "linewidths": 0.8}
        panel.contour(points[..., 0], points[..., 1], of_class, **style)


def main() -> None:
    """Write the figure, and print how many labels are right in each panel."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "transduce", "font.size": 10})
    task, truth = batch(seed=4)
    prediction = EMDirichlet(classes_present="all", max_iter=100).predict(task)
    figure = Figure(figsize=(7.2, 3.3))
    panels = figure.subplots(1, 2)
    for panel, title, labels in (
        (panels[0], "one by one (zero-shot)", task.zero_shot.argmax(1)),
        (panels[1], "jointly (EM-Dirichlet)", prediction.labels),
    ):
        draw_panel(panel, task.zero_shot, labels, truth)
        accuracy = (labels == truth).mean()
        panel.set_title(f"{title}: {accuracy:.0%} right", pad=14)
        print(f"{title}: {accuracy:.1%}")
    assert prediction.model is not None
    draw_boundaries(panels[0], lambda rows: rows)
    draw_boundaries(panels[1], prediction.model.probabilities)
    figure.savefig(FIGURE, metadata={"Date": None}, transparent=False, facecolor="white")


if __name__ == "__main__":
    main()
