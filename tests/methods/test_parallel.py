"""Many tasks at once: the answers of one by one."""

import pytest

from transduce import METHODS, InvalidSetting, InvalidTask, Task, predict_many
from transduce.benchmark.synthetic.simulated import simulate
from transduce.methods import parallel


def test_processes_answer_as_one_by_one():
    tasks = [simulate(n_classes=30, n_queries=20 + seed, seed=seed).task for seed in range(9)]
    method = METHODS["em-dirichlet"]()
    many = predict_many(method, tasks, workers=2)
    assert len(many) == 9
    for task, prediction in zip(tasks, many, strict=True):
        assert (prediction.probabilities == method.predict(task).probabilities).all()


class CountedHere:
    """A method that counts the tasks it solved in this process."""

    name = "counted-here"

    def __init__(self):
        self.method, self.solved = METHODS["em-dirichlet"](), 0

    def predict(self, task):
        self.solved += 1
        return self.method.predict(task)


def test_few_small_tasks_stay_in_this_process():
    tasks = [simulate(n_classes=30, n_queries=20, seed=seed).task for seed in range(6)]
    method = CountedHere()
    assert len(predict_many(method, tasks)) == 6
    assert method.solved == 6


def test_what_takes_long_goes_on_in_others(monkeypatch):
    monkeypatch.setattr(parallel, "available_cores", lambda: 2)
    monkeypatch.setattr(parallel, "TRIED", 0.0)
    monkeypatch.setattr(parallel, "WORTH", 0.0)
    tasks = [simulate(n_classes=30, n_queries=20 + seed, seed=seed).task for seed in range(6)]
    method = CountedHere()
    many = predict_many(method, tasks)
    assert method.solved == 2
    for task, prediction in zip(tasks, many, strict=True):
        assert (prediction.probabilities == method.predict(task).probabilities).all()


def test_no_tasks_are_no_work():
    assert predict_many(METHODS["em-dirichlet"](), [], workers=2) == []
    assert predict_many(METHODS["em-dirichlet"](), []) == []


def test_no_workers_are_refused():
    with pytest.raises(InvalidSetting, match="at least 1 worker"):
        predict_many(METHODS["em-dirichlet"](), [], workers=0)


def test_an_error_in_a_worker_arrives():
    good = simulate(n_classes=5, n_queries=5, classes_present=2).task
    bad = Task(query=good.query, zero_shot=good.zero_shot, space="embedding")
    with pytest.raises(InvalidTask, match="probability"):
        predict_many(METHODS["em-dirichlet"](), [good, bad], workers=2)
