"""Shots of some classes only: the mixture methods take them, the others say what is missing."""

import numpy as np
import pytest

from transduce.errors import InvalidTask
from transduce.methods import METHODS
from transduce.methods.em_dirichlet import EMDirichlet, HardEMDirichlet
from transduce.task import Task

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")

MIXTURES = ("em-dirichlet", "hard-em-dirichlet", "em-gaussian-identity", "kl-k-means")


def planted(n_images=90, n_classes=6, seed=0):
    random = np.random.default_rng(seed)
    truth = random.integers(n_classes, size=n_images)
    rows = random.dirichlet(np.ones(n_classes), n_images) * 0.6 + 0.4 * np.eye(n_classes)[truth]
    return rows, truth


def with_support(rows, truth, chosen, **settings):
    return Task(query=rows, zero_shot=rows, support=rows[chosen], support_labels=truth[chosen],
                **settings)  # fmt: skip


def test_it_must_be_asked_for():
    rows, truth = planted()
    chosen = np.flatnonzero(truth == 2)[:3]
    with pytest.raises(InvalidTask, match="found none of classes 0, 1, 3, 4, 5"):
        with_support(rows, truth, chosen)
    assert with_support(rows, truth, chosen, partial_support=True).n_classes == 6


@pytest.mark.parametrize("name", [n for n in MIXTURES if n in METHODS])
def test_mixtures_take_shots_of_some_classes(name):
    rows, truth = planted()
    chosen = np.flatnonzero(truth <= 1)[:4]
    task = with_support(rows, truth, chosen, partial_support=True)
    prediction = METHODS[name]().predict(task)
    assert np.isfinite(prediction.probabilities).all()
    np.testing.assert_allclose(prediction.probabilities.sum(1), 1.0, atol=1e-6)
    anchored = np.unique(truth[chosen])
    np.testing.assert_array_equal(prediction.class_of_cluster[anchored], anchored)
    steps = np.diff(prediction.trace.objective)
    assert (steps <= 1e-6 * np.abs(prediction.trace.objective[:-1])).all()


@pytest.mark.parametrize("method", [EMDirichlet(), HardEMDirichlet()])
def test_a_complete_support_is_answered_as_before(method):
    rows, truth = planted()
    chosen = np.concatenate([np.flatnonzero(truth == k)[:2] for k in range(6)])
    plain = method.predict(with_support(rows, truth, chosen))
    partial = method.predict(with_support(rows, truth, chosen, partial_support=True))
    np.testing.assert_array_equal(plain.probabilities, partial.probabilities)
    assert plain.trace.objective == partial.trace.objective


@pytest.mark.parametrize("name", ["paddle", "bd-cspn", "laplacian-shot", "tip-adapter"])
def test_methods_that_need_every_class_say_so(name):
    rows, truth = planted()
    method = METHODS[name]()
    chosen = np.flatnonzero(truth == 2)[:3]
    task = with_support(rows, truth, chosen, partial_support=True, space=method.spaces[0])
    with pytest.raises(InvalidTask, match=f"support for {name}"):
        method.predict(task)
