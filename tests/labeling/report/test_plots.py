"""The plots say what the numbers say."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from transduce.labeling.evaluation import ReliabilityBin
from transduce.labeling.report import plots


def parsed(markup):
    return ElementTree.fromstring(str(markup))


def of_class(svg, name):
    return [element for element in svg.iter() if element.get("class") == name]


def test_the_histogram_counts_every_image_once():
    scores = np.array([0.0, 0.31, 0.33, 0.99, 1.0, 1.0])
    svg = parsed(plots.confidence(scores, scores[3:], scores))
    titles = [title.text for title in svg.iter("title")]
    counts = [int(re.search(r": (\d+) images", title)[1]) for title in titles]
    doubtful = [int(re.search(r", (\d+) to review", title)[1]) for title in titles]
    assert sum(counts) == 6
    assert counts[-1] == 3
    assert sum(doubtful) == 3
    heights = [float(bar.get("height")) for bar in of_class(svg, "sure")]
    assert max(heights) == heights[-1] > 0


def test_the_curve_goes_down_where_the_objective_does():
    svg = parsed(plots.convergence([(9.0, 4.0, 3.5)]))
    points = [
        tuple(map(float, point.split(",")))
        for point in of_class(svg, "curve")[0].get("points").split()
    ]
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert [y for _, y in points] == sorted(y for _, y in points)  # SVG counts down


def test_batches_are_compared_above_their_own_ends():
    svg = parsed(plots.convergence([(9.0, 4.0), (109.0, 104.0, 103.0)]))
    first, second = (curve.get("points").split() for curve in of_class(svg, "curve"))
    assert first[-1].split(",")[1] == second[-1].split(",")[1]


@pytest.mark.parametrize("objectives", [[], [()], [(1.0,)]])
def test_nothing_to_draw_is_no_plot(objectives):
    assert plots.convergence(objectives) == ""


def test_a_flat_objective_is_drawn():
    assert of_class(parsed(plots.convergence([(2.0, 2.0)])), "curve")


def test_reliability_leaves_empty_bins_out():
    bins = [
        ReliabilityBin(low=0.0, high=0.5, images=0, confidence=0.0, accuracy=0.0),
        ReliabilityBin(low=0.5, high=1.0, images=7, confidence=0.9, accuracy=0.5),
    ]
    svg = parsed(plots.reliability(bins))
    (bar,) = of_class(svg, "sure")
    assert float(bar.get("height")) == pytest.approx((plots.HEIGHT - plots.TOP - plots.BOTTOM) / 2)


def test_confusion_shows_only_what_occurs_and_escapes_names():
    counts = [[3, 0, 1, 0], [0, 0, 0, 0], [0, 0, 2, 0]]
    svg = parsed(plots.confusion(counts, ["<b>a", "unused", 'c"']))
    titles = [title.text for title in svg.iter("title")]
    assert '<b>a labeled c": 1' in titles
    assert not any("unused" in title for title in titles)
    assert len(of_class(svg, "right")) == 2
    assert len(of_class(svg, "wrong")) == 1


def test_too_many_classes_are_no_matrix():
    size = plots.MOST_CELLS + 1
    counts = np.pad(np.eye(size, dtype=int), ((0, 0), (0, 1))).tolist()
    assert plots.confusion(counts, [f"class {i}" for i in range(size)]) == ""
    assert plots.confusion((), ["a"]) == ""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (1500, "1500"),
        (-33000, "−33k"),
        (2.5e6, "2.5M"),
        (1e-5, "1.0e−05"),
    ],
)
def test_numbers_on_an_axis_are_short(value, words):
    assert plots.axis_number(value) == words
