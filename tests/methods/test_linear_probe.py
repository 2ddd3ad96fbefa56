import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from transduce import InvalidSetting, Task
from transduce.errors import ConvergenceWarning
from transduce.methods.linear_probe import LinearProbe


def make_task(shots=6, length=1.0):
    generator = np.random.default_rng(0)
    classes = generator.normal(size=(4, 6))
    labels = np.repeat(np.arange(4), shots)
    return Task(
        query=length * (classes[generator.integers(0, 4, 30)] + generator.normal(size=(30, 6))),
        zero_shot=np.full((30, 4), 0.25),
        support=length * (classes[labels] + generator.normal(size=(len(labels), 6))),
        support_labels=labels,
        space="embedding",
    )


@pytest.mark.parametrize("regularization", [0.01, 1.0])
def test_agrees_with_scikit_learn(regularization):
    task = make_task()

    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    reference = LogisticRegression(C=1 / regularization, tol=1e-8, max_iter=5000)
    reference.fit(unit(task.support), task.support_labels)
    answer = LinearProbe(regularization=regularization, tolerance=1e-7).predict(task)
    expected = reference.predict_proba(unit(task.query))
    np.testing.assert_allclose(answer.probabilities, expected, atol=2e-4)
    assert answer.trace.converged


def test_only_directions_count():
    short, long = LinearProbe().predict(make_task()), LinearProbe().predict(make_task(length=50.0))
    np.testing.assert_allclose(short.probabilities, long.probabilities, atol=1e-9)


def test_objective_falls_from_that_of_a_guess():
    task = make_task()
    trace = LinearProbe().predict(task).trace
    assert trace.objective[-1] < trace.objective[0] < len(task.support) * np.log(4)
    assert trace.iterations == len(trace.objective)


def test_too_few_iterations_are_told():
    with pytest.warns(ConvergenceWarning, match="raise max_iter or regularization"):
        assert not LinearProbe(max_iter=2).predict(make_task()).trace.converged


@pytest.mark.parametrize(
    ("setting", "value"), [("regularization", 0), ("tolerance", 0), ("max_iter", 0)]
)
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        LinearProbe(**{setting: value})
