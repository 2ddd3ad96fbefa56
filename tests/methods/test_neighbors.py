import numpy as np
import pytest

from transduce.methods.neighbors import (
    mutual_graph,
    nearest_neighbors,
    neighbor_graph,
    smooth_assignments,
    smoothing_energy,
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


@pytest.mark.parametrize("entries", [64, 1 << 20])
def test_smoothing_is_softmax_of_scores_and_votes(monkeypatch, unit, entries):
    monkeypatch.setattr("transduce.simplex.probabilities.BLOCK_ENTRIES", entries)
    generator = np.random.default_rng(2)
    scores, graph = generator.normal(size=(30, 5)), mutual_graph(unit, 3)
    start = generator.dirichlet(np.ones(5), 30)
    expected = start.copy()
    for _ in range(3):
        exponents = np.exp(scores + graph.toarray() @ expected)
        expected = exponents / exponents.sum(1, keepdims=True)
    smoothed = smooth_assignments(scores, graph, start.copy(), 3)
    np.testing.assert_allclose(smoothed, expected, atol=1e-12)
    energy = sum(
        z * (np.log(z) - scores[i, k] - 0.5 * (graph.toarray()[i] @ expected[:, k]))
        for i, row in enumerate(expected)
        for k, z in enumerate(row)
    )
    assert smoothing_energy(scores, graph, expected) == pytest.approx(energy)


def test_energy_of_gentle_votes_falls(unit):
    scores, graph = np.random.default_rng(2).normal(size=(30, 5)), mutual_graph(unit, 3)
    energies = []
    for steps in range(1, 8):
        smoothed = smooth_assignments(scores, graph, np.full((30, 5), 0.2), steps)
        energies.append(smoothing_energy(scores, graph, smoothed))
    assert (np.diff(energies) <= 1e-12).all()
