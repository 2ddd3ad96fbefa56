import numpy as np
import pytest

from transduce import InvalidSetting, Task
from transduce.errors import ConvergenceWarning
from transduce.methods.alpha_tim import AlphaTIM, AlphaTIMLoss

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")


def make_arrays(seed=0):
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), 2)
    return generator.dirichlet(np.ones(4), 8), labels, generator.dirichlet(np.ones(4), 9)


def direct_loss(prototypes, support, labels, query, alpha, temperature):
    """The published objective, image by image."""

    def distribution(x):
        scores = np.exp([-temperature / 2 * np.sum((x - p) ** 2) for p in prototypes])
        return scores / scores.sum()

    def entropy(p):
        return (1 - np.sum(p**alpha)) / (alpha - 1)

    of_query = np.array([distribution(x) for x in query])
    cross = -np.mean([np.log(distribution(x)[y]) for x, y in zip(support, labels, strict=True)])
    return cross - entropy(of_query.mean(0)) + np.mean([entropy(p) for p in of_query])


@pytest.mark.parametrize("alpha", [1.5, 2.0, 7.0])
def test_value_and_gradient_against_finite_differences(alpha):
    support, labels, query = make_arrays()
    prototypes = np.random.default_rng(1).normal(size=(4, 4)) / 3
    loss = AlphaTIMLoss(support, labels, query, alpha, 15.0)
    value, gradient = loss.value_and_gradient(prototypes)
    assert value == pytest.approx(direct_loss(prototypes, support, labels, query, alpha, 15.0))
    numeric = np.empty_like(gradient)
    for place in np.ndindex(*prototypes.shape):
        step = np.zeros_like(prototypes)
        step[place] = 1e-6
        above = direct_loss(prototypes + step, support, labels, query, alpha, 15.0)
        below = direct_loss(prototypes - step, support, labels, query, alpha, 15.0)
        numeric[place] = (above - below) / 2e-6
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)


def test_training_lowers_the_objective():
    support, labels, query = make_arrays()
    task = Task(query=query, zero_shot=query, support=support, support_labels=labels)
    trace = AlphaTIM().predict(task).trace
    assert trace.iterations == len(trace.objective) == 1000
    assert trace.objective[-1] < trace.objective[0]


def test_too_short_a_training_is_told():
    support, labels, query = make_arrays()
    task = Task(query=query, zero_shot=query, support=support, support_labels=labels)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or learning_rate"):
        assert not AlphaTIM(max_iter=20, learning_rate=0.1).predict(task).trace.converged
    with pytest.warns(ConvergenceWarning, match="alpha-tim .* after 1 iterations"):
        assert not AlphaTIM(max_iter=1).predict(task).trace.converged


@pytest.mark.parametrize(
    ("setting", "value"),
    [("alpha", 1.0), ("alpha", np.inf), ("temperature", 0), ("learning_rate", -1), ("max_iter", 0)],
)
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        AlphaTIM(**{setting: value})
