import numpy as np
import pytest

from transduce.methods.neighbors import mutual_graph
from transduce.methods.prototypes import directions
from transduce.methods.smoothing import smooth_assignments, smoothing_energy


@pytest.fixture
def unit():
    return directions(np.random.default_rng(1).normal(size=(30, 4)))


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
