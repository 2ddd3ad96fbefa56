"""Many tasks at once: the answers of one by one."""

import pytest

from transduce import METHODS, InvalidSetting, InvalidTask, Task, predict_many
from transduce.benchmark.synthetic.simulated import simulate


def test_processes_answer_as_one_by_one():
    tasks = [simulate(n_classes=30, n_queries=20 + seed, seed=seed).task for seed in range(9)]
    method = METHODS["em-dirichlet"]()
    many = predict_many(method, tasks, workers=2)
    assert len(many) == 9
    for task, prediction in zip(tasks, many, strict=True):
        assert (prediction.probabilities == method.predict(task).probabilities).all()


def test_no_tasks_are_no_work():
    assert predict_many(METHODS["em-dirichlet"](), [], workers=2) == []


def test_no_workers_are_refused():
    with pytest.raises(InvalidSetting, match="at least 1 worker"):
        predict_many(METHODS["em-dirichlet"](), [], workers=0)


def test_an_error_in_a_worker_arrives():
    good = simulate(n_classes=5, n_queries=5, classes_present=2).task
    bad = Task(query=good.query, zero_shot=good.zero_shot, space="embedding")
    with pytest.raises(InvalidTask, match="probability"):
        predict_many(METHODS["em-dirichlet"](), [good, bad], workers=2)
