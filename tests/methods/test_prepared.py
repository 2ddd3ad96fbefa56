"""A support solved once answers as one solved afresh."""

import numpy as np
import pytest

from transduce import METHODS, InvalidTask, Task
from transduce.benchmark.synthetic.simulated import simulate

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")

PREPARABLE = [name for name, method in METHODS.items() if hasattr(method, "prepare")]


def batches(shots=3):
    first = simulate(n_classes=25, shots=shots, seed=1).task
    others = [simulate(n_classes=25, n_queries=30, seed=seed).task for seed in (2, 3)]
    return first, others


def with_support(task, support):
    return Task(
        query=task.query,
        zero_shot=task.zero_shot,
        support=support.support,
        support_labels=support.support_labels,
    )


@pytest.mark.parametrize("shots", [1, 3])
@pytest.mark.parametrize("name", PREPARABLE)
def test_same_answer_as_afresh(name, shots):
    first, others = batches(shots)
    method = METHODS[name]()
    prepared = method.prepare(first)
    for task in others:
        afresh = method.predict(with_support(task, first))
        reused = prepared.predict(task)
        assert (reused.probabilities == afresh.probabilities).all()
        assert reused.trace.objective == afresh.trace.objective


def test_it_takes_tasks_that_carry_the_same_support():
    first, others = batches()
    prepared = METHODS["em-dirichlet"]().prepare(first)
    with_it = prepared.predict(with_support(others[0], first))
    assert (with_it.labels == prepared.predict(others[0]).labels).all()


def test_another_support_is_refused():
    first, _ = batches()
    other = simulate(n_classes=25, shots=3, seed=9).task
    with pytest.raises(InvalidTask, match="another support"):
        METHODS["em-dirichlet"]().prepare(first).predict(other)


def test_another_number_of_classes_is_refused():
    first, _ = batches()
    with pytest.raises(InvalidTask, match="25, 25"):
        METHODS["em-dirichlet"]().prepare(first).predict(simulate(n_classes=26).task)


def test_nothing_to_prepare_is_refused():
    with pytest.raises(InvalidTask, match="support"):
        METHODS["em-dirichlet"]().prepare(simulate(n_classes=5, classes_present=2).task)


def test_the_model_answers_for_new_images():
    first, _ = batches()
    prediction = METHODS["em-dirichlet"]().predict(first)
    again = prediction.model.probabilities(first.query)
    assert (again.argmax(1) == prediction.labels).mean() > 0.95
    assert again.sum(1) == pytest.approx(1.0)
    one = prediction.model.probabilities(first.query[3:4])
    assert one[0] == pytest.approx(again[3], abs=1e-9)
    assert np.isfinite(again).all()
