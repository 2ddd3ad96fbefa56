"""Clusters find their classes."""

import numpy as np
import pytest

from transduce import Task
from transduce.methods.matching import EMPTY, in_classes, match

CLUSTERS = np.array([2, 2, 0, 0, 3])
# Clusters 2 and 0 both like class 1 best, cluster 2 more so; cluster 3 likes class 0.
VOTES = np.array(
    [
        [0.1, 0.8, 0.1, 0.0],
        [0.1, 0.9, 0.0, 0.0],
        [0.1, 0.5, 0.4, 0.0],
        [0.0, 0.6, 0.4, 0.0],
        [1.0, 0.0, 0.0, 0.0],
    ]
)


def task():
    return Task(query=VOTES, zero_shot=VOTES)


def test_graph_matching_shares_no_class():
    assert match(CLUSTERS, task(), "graph").tolist() == [2, EMPTY, 1, 0]


def test_argmax_takes_the_favorite():
    assert match(CLUSTERS, task(), "argmax").tolist() == [1, EMPTY, 1, 0]


def test_none_trusts_the_numbers():
    assert match(CLUSTERS, task(), "none").tolist() == [0, 1, 2, 3]


def test_the_embedding_space_asks_the_mean_image():
    images = np.array([[1.0, 0.1], [0.1, 1.0], [1.0, -0.9]])
    found = Task.from_embeddings(images, [[1.0, 0.0], [0.0, 1.0]], space="embedding")
    # The mean of images 0 and 2 points to class 0 although nothing says so of their guesses.
    assert match(np.array([1, 0, 1]), found, "graph").tolist() == [1, 0]


@pytest.mark.parametrize("matching", ["graph", "argmax", "none"])
def test_probabilities_stay_on_the_simplex(matching):
    random = np.random.default_rng(0)
    for _ in range(50):
        rows = random.dirichlet(np.ones(6), 8)
        clusters = rows.argmax(1)
        mapping = match(clusters, Task(query=rows, zero_shot=rows), matching)
        moved = in_classes(rows.copy(), mapping)
        assert moved.sum(1) == pytest.approx(1.0)
        if matching == "graph":
            assert (moved.argmax(1) == mapping[clusters]).all()
            assert np.sort(moved, 1) == pytest.approx(np.sort(rows, 1))
