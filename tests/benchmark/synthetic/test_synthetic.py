"""The drawn world: its classes and drawings."""

from collections import Counter

import numpy as np
import pytest

from transduce.benchmark.synthetic import (
    COLORS,
    IMAGE_SIZE,
    LOOKS,
    SEEN,
    SHAPES,
    UNSEEN,
    Thing,
    draw,
    name_of,
)
from transduce.benchmark.synthetic.outlines import outline


def test_pairs_are_split_without_a_new_word():
    assert len(SEEN) == 84
    assert len(UNSEEN) == 36
    assert not set(SEEN) & set(UNSEEN)
    assert set(SEEN) | set(UNSEEN) == {(color, shape) for color in COLORS for shape in SHAPES}
    assert {shape for _, shape in SEEN} == set(SHAPES)
    assert {color for color, _ in SEEN} == set(COLORS)
    assert set(Counter(shape for _, shape in UNSEEN).values()) == {3}
    assert name_of(("red", "circle")) == "red circle"


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_generator_draws_the_same_picture(look, shape):
    thing = Thing(shape, "red", "striped")
    first, again, other = (
        np.asarray(draw(thing, LOOKS[look], np.random.default_rng(seed))) for seed in (1, 1, 2)
    )
    assert first.shape == (IMAGE_SIZE, IMAGE_SIZE, 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("color", COLORS)
def test_a_solid_circle_has_pixels_of_its_color(color):
    """Up to the light: the nearest pixel of each of five drawings, and of those the median."""
    expected = np.array(COLORS[color], float)
    nearest = []
    for seed in range(5):
        thing = Thing("circle", color, "solid")
        picture = np.asarray(draw(thing, LOOKS["training"], np.random.default_rng(seed)), float)
        nearest.append(np.abs(picture - expected).sum(2).min())
    assert np.median(nearest) < 60


@pytest.mark.parametrize("shape", SHAPES)
def test_outlines_lie_within_the_unit_circle(shape):
    outer, _ = outline(shape)
    radii = np.linalg.norm(outer, axis=1)
    assert 0.9 < radii.max() < 1.15


def test_edges_are_smooth():
    """Anti-aliasing: a black shape on gray has pixels in between, not only the two."""
    from transduce.benchmark.synthetic.drawing import _mask

    mask = _mask("star", LOOKS["training"], np.random.default_rng(0))
    between = (mask > 0.05) & (mask < 0.95)
    assert (mask == 1).any()
    assert (mask == 0).any()
    assert between.mean() > 0.005
