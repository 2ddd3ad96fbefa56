import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce import InvalidSetting, Task
from transduce.errors import ConvergenceWarning
from transduce.methods.laplacian_shot import LaplacianShot

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")


def make_task(seed=0, queries=40, spread=1.0):
    generator = np.random.default_rng(seed)
    classes = generator.normal(size=(5, 8))
    labels = np.arange(5)
    images = classes[generator.integers(0, 5, queries)]
    return Task.from_embeddings(
        images + spread * generator.normal(size=images.shape),
        classes,
        support=classes + spread * generator.normal(size=classes.shape),
        support_labels=labels,
        space="embedding",
    )


def energy(assignments, task, weight, neighbors):
    """The published energy, term by term."""
    total = 0.0
    for n, y in enumerate(assignments):
        distances = np.linalg.norm(task.query - task.query[n], axis=1)
        distances[n] = np.inf
        for k in range(5):
            cost = np.sum((task.query[n] - task.support[k]) ** 2)  # one shot is its own mean
            total += y[k] * cost + y[k] * np.log(y[k])
        for m in np.argsort(distances)[:neighbors]:
            total -= weight * y @ assignments[m]
    return total


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    weight=st.floats(0.0, 30.0),
    neighbors=st.integers(1, 60),
    spread=st.floats(0.1, 3.0),
)
def test_energy_never_increases(seed, weight, neighbors, spread):
    method = LaplacianShot(weight=weight, neighbors=neighbors, tolerance=0.0, max_iter=50)
    energies = np.array(method.predict(make_task(seed, spread=spread)).trace.objective)
    assert (np.diff(energies) <= 1e-12 * np.abs(energies[:-1])).all()


def test_energy_falls_and_is_that_of_the_answer():
    task = make_task()
    prediction = LaplacianShot(weight=1.0).predict(task)
    assert prediction.trace.objective[-1] < prediction.trace.objective[0]
    assert prediction.trace.converged
    expected = energy(prediction.probabilities, task, weight=1.0, neighbors=2)
    assert prediction.trace.objective[-1] == pytest.approx(expected, rel=1e-9)


def test_swinging_is_ended_and_told():
    # Of two images that are each other's neighbor, both cannot follow the other at once.
    with pytest.warns(ConvergenceWarning, match="lower weight"):
        traces = [LaplacianShot(weight=9.0).predict(make_task(seed)).trace for seed in range(40)]
    swung = [trace for trace in traces if not trace.converged]
    assert swung
    assert all(trace.iterations <= 20 for trace in swung)


def test_without_weight_it_is_the_nearest_class_mean():
    task = make_task()
    distances = np.linalg.norm(task.query[:, None] - task.support[None], axis=2)
    answer = LaplacianShot(weight=0.0).predict(task)
    np.testing.assert_array_equal(answer.labels, distances.argmin(1))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("weight", -1.0), ("neighbors", 0), ("neighbors", 1.5), ("max_iter", 0), ("tolerance", -1)],
)
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        LaplacianShot(**{setting: value})
