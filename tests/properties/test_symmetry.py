"""Neither the order of the images nor the numbering of the classes matters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce import METHODS, Task
from transduce.benchmark.synthetic.simulated import simulate

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")

MIXTURES = [name for name, method in METHODS.items() if hasattr(method, "recipe")]


def permuted(task, queries, classes):
    """The task with its images reordered and its classes renumbered."""
    new_number = np.argsort(classes)
    return Task(
        query=task.query[queries][:, classes],
        zero_shot=task.zero_shot[queries][:, classes],
        support=task.support[:, classes],
        support_labels=new_number[task.support_labels],
    )


@pytest.mark.parametrize("name", MIXTURES)
@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_permutations_permute_the_answer(name, seed):
    task = simulate(n_classes=9, n_queries=20, classes_present=4, shots=2, seed=seed).task
    random = np.random.default_rng(seed)
    queries, classes = random.permutation(task.n_queries), random.permutation(task.n_classes)
    labels = METHODS[name]().predict(task).labels
    moved = METHODS[name]().predict(permuted(task, queries, classes)).labels
    assert (classes[moved] == labels[queries]).all()
