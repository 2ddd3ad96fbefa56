import numpy as np
import pytest

from transduce.methods.neighbors import (
    agreement_nearby,
    mutual_graph,
    nearest_neighbors,
    neighbor_graph,
)
from transduce.methods.prototypes import directions


@pytest.fixture
def unit():
    return directions(np.random.default_rng(1).normal(size=(30, 4)))


def test_neighbors_are_the_nearest_others(monkeypatch, unit):
    monkeypatch.setattr("transduce.simplex.probabilities.BLOCK_ENTRIES", 64)  # several blocks
    distances = np.linalg.norm(unit[:, None] - unit[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = nearest_neighbors(unit, unit, 3, skip_self=True)
    np.testing.assert_array_equal(nearest.indices, np.argsort(distances, axis=1)[:, :3])
    for i, others in enumerate(nearest.indices):
        np.testing.assert_allclose(nearest.cosines[i], unit[others] @ unit[i])


def test_there_may_be_fewer_others_than_neighbors(unit):
    assert nearest_neighbors(unit[:3], unit[:3], 10, skip_self=True).indices.shape == (3, 2)
    assert nearest_neighbors(unit[:1], unit[:1], 10, skip_self=True).indices.shape == (1, 0)
    assert nearest_neighbors(unit[:1], unit[:3], 10, skip_self=False).indices.shape == (1, 3)


def test_ties_go_to_the_lower_index():
    rows = np.eye(3)[[0, 0, 0, 1, 1, 0]]
    nearest = nearest_neighbors(rows, rows, 2, skip_self=True).indices
    assert nearest.tolist() == [[1, 2], [0, 2], [0, 1], [4, 0], [3, 0], [0, 1]]


def test_precision_is_kept(unit):
    assert nearest_neighbors(unit, unit, 2, skip_self=True).cosines.dtype == np.float64
    single = unit.astype(np.float32)
    assert nearest_neighbors(single, single, 2, skip_self=True).cosines.dtype == np.float32
    assert mutual_graph(single, 2).dtype == np.float32


def test_graphs_hold_the_cosines_that_are_above_zero(unit):
    nearest = nearest_neighbors(unit, unit, 29, skip_self=True)
    expected = np.maximum(unit @ unit.T, 0)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(neighbor_graph(nearest, 30).toarray(), expected, atol=1e-12)
    np.testing.assert_allclose(mutual_graph(unit, 29).toarray(), expected / 29, atol=1e-12)


def test_agreement_nearby_is_over_paths_of_two_steps():
    random = np.random.default_rng(0)
    rows = random.normal(size=(30, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = random.integers(3, size=30)
    graph = mutual_graph(rows, 3)
    paths = (graph @ graph).toarray()
    np.fill_diagonal(paths, 0)
    expected = (paths * (labels[:, None] == labels)).sum(1) / paths.sum(1)
    np.testing.assert_allclose(agreement_nearby(graph, labels), expected, rtol=1e-5)


def test_without_neighbors_an_image_agrees_with_itself():
    one = np.ones((1, 4)) / 2
    assert agreement_nearby(mutual_graph(one, 3), np.zeros(1, int)) == [1.0]
