import numpy as np
import pytest
from rival_tasks import (
    FEW,
    SMALL,
    accuracy,
    clip_like,
    directed_graph,
    softmax,
    text_guess,
    unit,
)

from transduce import InvalidSetting, Task, TransCLIP, ZeroShot

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")


def squared(x, mean, scale):
    return sum((x[j] - mean[j]) ** 2 / scale[j] for j in range(len(x)))


def inner_steps(z, task, guess, means, scale, text_weight, shot_votes):
    """Five updates of the assignments, as printed: over 50, with 50 / (2 . 3) before the graph."""
    graph = directed_graph(task.query, task.query, 3, skip_self=True)
    for _ in range(5):
        following = np.empty_like(z)
        for i, x in enumerate(task.query):
            exponents = []
            for k, mean in enumerate(means):
                votes = shot_votes[i, k] + sum(
                    (graph[i, j] + graph[j, i]) * z[j, k] for j in range(len(z))
                )
                inside = (-0.5 * squared(x, mean, scale) + 50 / 6 * votes) / 50
                exponents.append(text_weight * np.log(guess[i, k]) + inside)
            following[i] = softmax(exponents)
        z = following
    return z


def one_update(z, task, weight):
    """Means and scale from weighted sums over queries (1/Q each) and shots (`weight` each)."""
    n_queries, n_features = task.query.shape
    samples = [(x, z[i], 1 / n_queries) for i, x in enumerate(task.query)]
    if task.support is not None:
        eye = np.eye(task.n_classes)
        samples += [
            (x, eye[k], weight) for x, k in zip(task.support, task.support_labels, strict=True)
        ]
    means = np.zeros((task.n_classes, n_features))
    for x, assigned, w in samples:
        for k in range(task.n_classes):
            means[k] += w * assigned[k] * x
    means = unit(means)
    scale = np.zeros(n_features)
    for x, assigned, w in samples:
        for k in range(task.n_classes):
            scale += w * assigned[k] * (x - means[k]) ** 2
    return means, scale / sum(w for _, _, w in samples)


def test_one_iteration_without_shots_by_loops():
    task, _ = clip_like(**SMALL)
    guess = text_guess(task)
    means = np.zeros((4, 6))
    for k in range(4):
        for i in sorted(range(14), key=lambda i: -guess[i, k])[:8]:
            means[k] += guess[i, k] * task.query[i]
    none = np.zeros_like(guess)
    z = inner_steps(guess, task, guess, unit(means), np.full(6, 1 / 6), 1.0, none)
    means, scale = one_update(z, task, 0.0)
    z = inner_steps(z, task, guess, means, scale, 1.0, none)
    prediction = TransCLIP(max_iter=1).predict(task)
    np.testing.assert_allclose(prediction.model.density.means, means, atol=1e-10)
    np.testing.assert_allclose(prediction.model.density.variance, scale, atol=1e-10)
    np.testing.assert_allclose(prediction.probabilities, z, atol=1e-10)


@pytest.mark.parametrize("gamma", TransCLIP.grid["gamma"])
def test_one_iteration_with_shots_by_loops(gamma):
    task, _ = clip_like(**SMALL, shots=2)
    guess = text_guess(task)
    means = unit(np.array([task.support[task.support_labels == k].mean(0) for k in range(4)]))
    links = directed_graph(task.support, task.query, 3, skip_self=False)
    votes = np.zeros_like(guess)
    for s, k in enumerate(task.support_labels):
        for i in range(14):
            votes[i, k] += links[s, i]
    z = inner_steps(guess, task, guess, means, np.full(6, 1 / 6), 0.5, votes)
    means, scale = one_update(z, task, 50 * gamma / len(task.support))
    z = inner_steps(z, task, guess, means, scale, 0.5, votes)
    prediction = TransCLIP(max_iter=1, gamma=gamma).predict(task)
    np.testing.assert_allclose(prediction.model.density.means, means, atol=1e-10)
    np.testing.assert_allclose(prediction.model.density.variance, scale, atol=1e-10)
    np.testing.assert_allclose(prediction.probabilities, z, atol=1e-10)


@pytest.mark.parametrize("shots", [0, 2])
def test_objective_is_that_of_the_answer_term_by_term(shots):
    task, _ = clip_like(**SMALL, shots=shots)
    prediction = TransCLIP(max_iter=3, gamma=0.01).predict(task)
    z, guess, density = prediction.probabilities, text_guess(task), prediction.model.density
    graph = directed_graph(task.query, task.query, 3, skip_self=True)
    log_scale = np.log(density.variance).sum()

    def log_density(x, k):
        return -0.5 * (squared(x, density.means[k], density.variance) + log_scale)

    expected = -0.5 * np.sum((graph + graph.T) / 6 * (z @ z.T))
    for i, x in enumerate(task.query):
        for k in range(4):
            text = (0.5 if shots else 1.0) * np.log(guess[i, k])
            expected += z[i, k] * (np.log(z[i, k]) - text - log_density(x, k) / 50)
    if shots:
        links = directed_graph(task.support, task.query, 3, skip_self=False)
        for s, k in enumerate(task.support_labels):
            expected -= np.sum(links[s] / 6 * z[:, k])
            expected -= 0.01 * 14 / len(task.support) * log_density(task.support[s], k)
    assert prediction.trace.objective[-1] == pytest.approx(expected)
    assert len(prediction.trace.objective) == prediction.trace.iterations == 3


def test_gains_where_all_classes_are_present_and_loses_where_few_are():
    assert accuracy(TransCLIP()) > accuracy(ZeroShot()) + 0.02
    assert accuracy(TransCLIP(), **FEW) < accuracy(ZeroShot(), **FEW) - 0.2


def test_shots_help_where_few_classes_are_present():
    assert accuracy(TransCLIP(), shots=4, **FEW) > accuracy(TransCLIP(), **FEW) + 0.2


def test_objective_falls_on_the_whole():
    task, _ = clip_like()
    objective = TransCLIP().predict(task).trace.objective
    assert objective[-1] < objective[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("images", [1, 2, 9])
def test_duplicates_are_finite(dtype, images):
    rows = np.repeat(np.array([[1.0, 2.0, 0.0, 0.0]], dtype=dtype), images, axis=0)
    task = Task.from_embeddings(rows, np.eye(3, 4, dtype=dtype), space="embedding")
    probabilities = TransCLIP().predict(task).probabilities
    assert np.isfinite(probabilities).all()
    assert (probabilities.argmax(1) == 1).all()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("gamma", -1.0),
        ("text_weight", -1.0),
        ("likelihood_weight", 0.0),
        ("neighbors", 0),
        ("images_per_class", 0),
        ("max_iter", 0),
        ("inner_iter", 1.5),
    ],
)
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        TransCLIP(**{setting: value})
