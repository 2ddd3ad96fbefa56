import numpy as np
import pytest

from transduce.labeling.report.map import plane_positions


def groups(n_groups, each, seed=0):
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((n_groups, 32)).repeat(each, 0)
    rows += 0.4 * generator.standard_normal(rows.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def nearest_share(found, group):
    """Share of images whose nearest other image is of their group."""
    distance = ((found[:, None] - found) ** 2).sum(2)
    np.fill_diagonal(distance, np.inf)
    return (group[distance.argmin(1)] == group).mean()


@pytest.mark.parametrize("each", [12, 70])
def test_alike_images_lie_together(each):
    rows, group = groups(10, each), np.arange(10).repeat(each)
    found = plane_positions(rows)
    assert found.shape == (10 * each, 2)
    assert (found >= 0).all()
    assert (found <= 1).all()
    assert nearest_share(found, group) > 0.95
    np.testing.assert_array_equal(plane_positions(rows), found)  # the same picture every time


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_images_have_places_too(n):
    found = plane_positions(groups(1, n))
    assert found.shape == (n, 2)
    assert np.isfinite(found).all()


def test_equal_images_are_no_trouble():
    rows = np.tile(groups(1, 1), (30, 1))
    assert np.isfinite(plane_positions(rows)).all()
