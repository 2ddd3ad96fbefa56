"""An answer that did not settle is never returned in silence."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from transduce import METHODS, predict_many
from transduce.benchmark.synthetic.simulated import simulate
from transduce.errors import ConvergenceWarning
from transduce.methods.em_dirichlet import EMDirichlet
from transduce.methods.method import without_convergence_warnings

MIXTURES = [name for name, method in METHODS.items() if hasattr(method, "recipe")]


@pytest.fixture(scope="module")
def task():
    return simulate(n_classes=20, classes_present=4, shots=1).task


@pytest.mark.parametrize("name", MIXTURES)
def test_warns_once_with_method_iterations_and_remedy(name, task):
    with pytest.warns(ConvergenceWarning) as caught:
        METHODS[name](max_iter=1).predict(task)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(f"Expected {name} to settle, found it still changing after 1 iter")
    assert "raise max_iter" in message
    assert caught[0].filename == __file__  # the caller's line, not the library's


def test_a_prepared_method_warns_too(task):
    with pytest.warns(ConvergenceWarning, match="em-dirichlet"):
        EMDirichlet(max_iter=1).prepare(task).predict(task)


def test_says_nothing_once_settled():
    task = simulate(n_classes=5, classes_present=3).task
    assert EMDirichlet(max_iter=1000).predict(task).trace.converged


@pytest.mark.parametrize("workers", [1, 2])
def test_many_tasks_are_reported_together(workers, task):
    with pytest.warns(ConvergenceWarning, match="in 3 of 3 tasks") as caught:
        predict_many(EMDirichlet(max_iter=1), [task] * 3, workers=workers)
    assert len(caught) == 1


def test_silence_holds_for_the_calling_thread_alone(task):
    method = EMDirichlet(max_iter=1)
    with without_convergence_warnings():
        assert not method.predict(task).trace.converged
        with ThreadPoolExecutor(1) as pool, warnings.catch_warnings():
            warnings.simplefilter("error")
            assert isinstance(pool.submit(method.predict, task).exception(), ConvergenceWarning)
    with pytest.warns(ConvergenceWarning):
        method.predict(task)
