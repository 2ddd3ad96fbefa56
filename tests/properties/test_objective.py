"""The penalized objective never increases, for every method whose theory promises it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce import METHODS, Task

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")

# The diagonal Gaussian clamps its precisions, which is no maximum-likelihood step.
PROMISED = [
    "em-dirichlet",
    "hard-em-dirichlet",
    "hard-k-means",
    "soft-k-means",
    "em-gaussian-identity",
    "kl-k-means",
    "paddle",
]
SIZES = st.tuples(st.integers(2, 8), st.integers(1, 25), st.integers(0, 2), st.integers(0, 10**6))


def random_task(n_classes, n_queries, shots, seed):
    random = np.random.default_rng(seed)
    sharpness = random.uniform(0.3, 4.0)
    centers = np.eye(n_classes) * sharpness * 3 + 0.3
    query = random.dirichlet(np.ones(n_classes) * sharpness, n_queries)
    labels = np.repeat(np.arange(n_classes), shots)
    support = np.array([random.dirichlet(centers[label]) for label in labels])
    return Task(
        query=query,
        zero_shot=query,
        support=support if shots else None,
        support_labels=labels if shots else None,
    )


def assert_never_increases(objective):
    objective = np.array(objective)
    rises = np.diff(objective)
    assert (rises <= 1e-9 * (1 + np.abs(objective[:-1]))).all(), objective


@pytest.mark.parametrize("name", PROMISED)
@settings(max_examples=30)
@given(SIZES)
def test_it_never_increases(name, sizes):
    n_classes, n_queries, shots, seed = sizes
    method = METHODS[name]()
    task = random_task(n_classes, n_queries, max(shots, method.support == "needed"), seed)
    trace = method.predict(task).trace
    assert len(trace.objective) == trace.iterations >= 1
    assert_never_increases(trace.objective)


@pytest.mark.parametrize("solver", ["mm", "minka"])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 7.5])
@pytest.mark.parametrize("name", ["em-dirichlet", "hard-em-dirichlet"])
def test_nor_with_another_solver_or_weight(name, penalty, solver):
    method = METHODS[name](penalty=penalty, solver=solver, solver_steps=200)
    for seed in range(5):
        assert_never_increases(method.predict(random_task(6, 20, seed % 2, seed)).trace.objective)


@pytest.mark.parametrize("name", ["em-dirichlet", "hard-em-dirichlet"])
@pytest.mark.parametrize("shots", [0, 1])
def test_it_is_the_papers_objective(name, shots):
    """Equation 4, summed term by term from the last assignments and parameters."""
    from transduce.simplex import dirichlet

    task = random_task(5, 20, shots, seed=3)
    prediction = METHODS[name](matching="none", penalty=2.0).predict(task)
    alpha, u = prediction.model.parameters, prediction.probabilities
    densities = dirichlet.log_density(np.log(task.query + 1e-15), alpha)
    value = -(u * densities).sum()
    if shots:
        shot = dirichlet.log_density(np.log(task.support + 1e-15), alpha)
        value -= shot[np.arange(len(shot)), task.support_labels].sum()
    if name == "em-dirichlet":
        value += (u * np.log(np.maximum(u, 1e-300))).sum()
    pi = u.mean(0)
    value -= 2.0 * task.n_queries * (pi * np.log(np.maximum(pi, 1e-300))).sum()
    assert prediction.trace.objective[-1] == pytest.approx(value, rel=1e-9)
