import numpy as np
import pytest

from transduce import InvalidSetting, Task
from transduce.methods.bd_cspn import BDCSPN


def make_task(shots=3, space="embedding"):
    generator = np.random.default_rng(0)
    classes = generator.normal(size=(4, 8))
    labels = np.repeat(np.arange(4), shots)
    images = classes[generator.integers(0, 4, 30)] + generator.normal(size=(30, 8))
    support = classes[labels] + generator.normal(size=(len(labels), 8))
    return Task.from_embeddings(
        images, classes, support=support, support_labels=labels, space=space
    )


def test_follows_its_formula_sample_by_sample():
    task = make_task()
    unit = lambda v: v / np.linalg.norm(v)  # noqa: E731
    shift = task.support.mean(0) - task.query.mean(0)
    samples = [*task.support, *(unit(x + shift) for x in task.query)]
    basic = [task.support[task.support_labels == k].mean(0) for k in range(4)]
    numerators, totals = np.zeros((4, 8)), np.zeros(4)
    for x in samples:
        weights = np.exp([10.0 * x @ unit(p) for p in basic])
        weights /= weights.sum()
        numerators += np.outer(weights, x)
        totals += weights
    rectified = numerators / totals[:, np.newaxis]
    cosines = np.array([[x @ unit(p) for p in rectified] for x in task.query])
    expected = np.exp(10.0 * cosines)
    expected /= expected.sum(1, keepdims=True)
    answer = BDCSPN(temperature=10.0).predict(task)
    np.testing.assert_allclose(answer.probabilities, expected, rtol=1e-9)


@pytest.mark.parametrize("temperature", [0.0, -1.0, np.nan, np.inf])
def test_refuses_senseless_temperatures(temperature):
    with pytest.raises(InvalidSetting, match="positive temperature"):
        BDCSPN(temperature=temperature)
