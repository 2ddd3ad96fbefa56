"""The fitted mixture as a classifier: from clusters to classes, in probabilities and logarithms."""

import numpy as np
import pytest

from transduce.methods.mixture import MixtureModel
from transduce.mixtures.gaussian import Spherical
from transduce.simplex.probabilities import softmax


@pytest.mark.parametrize("class_of_cluster", [(0, 0, 2), (2, 0, 1), (1, -1, -1), (0, 1, 2)])
def test_logarithms_agree_with_probabilities(class_of_cluster):
    """Clusters that share a class add their probabilities; a class without one has none."""
    model = MixtureModel(
        Spherical(), np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]), np.log([0.5, 0.3, 0.2]),
        np.array(class_of_cluster),
    )  # fmt: skip
    rows = np.random.default_rng(0).normal(size=(7, 2))
    expected = model.probabilities(rows)
    assert softmax(model.tempered(rows, 1.0)) == pytest.approx(expected, abs=1e-12)


def test_a_larger_dimension_is_less_confident():
    model = MixtureModel(Spherical(), np.eye(3), np.zeros(3), np.array([0, 0, 2]))
    sharp, flat = (softmax(model.tempered(3 * np.eye(3), d)) for d in (1.0, 5.0))
    assert (flat.max(1) < sharp.max(1)).all()
    assert (flat[:, 1] == 0).all()
