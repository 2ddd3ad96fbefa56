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

from transduce import InvalidSetting, StatA, Task, ZeroShot

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")


def log_density(x, mean, variance):
    return sum(
        -0.5 * (x[j] - mean[j]) ** 2 / variance[j] - 0.5 * np.log(variance[j])
        for j in range(len(x))
    )


def inner_steps(z, task, guess, means, variances):
    graph = directed_graph(task.query, task.query, 3, skip_self=True)
    for _ in range(5):
        following = np.empty_like(z)
        for i, x in enumerate(task.query):
            exponents = []
            for k in range(len(means)):
                votes = sum((graph[i, j] + graph[j, i]) * z[j, k] for j in range(len(z)))
                inside = (log_density(x, means[k], variances[k]) + 50 / 6 * votes) / 50
                exponents.append(np.log(guess[i, k]) + inside)
            following[i] = softmax(exponents)
        z = following
    return z


def anchor_variance(task, guess):
    total = np.zeros(task.query.shape[1])
    for i, x in enumerate(task.query):
        for k, t in enumerate(task.class_embeddings):
            total += guess[i, k] * (x - t) ** 2
    return total / len(guess)


def one_update(z, task, wide):
    means, variances = [], []
    for k, t in enumerate(task.class_embeddings):
        count = sum(int(row.argmax() == k) for row in z)
        trust = count / (count + 1)
        average = sum(z[i, k] * x for i, x in enumerate(task.query)) / z[:, k].sum()
        mean = unit(trust * unit(average) + (1 - trust) * t)
        spread = sum(z[i, k] * (x - mean) ** 2 for i, x in enumerate(task.query)) / z[:, k].sum()
        means.append(mean)
        variances.append(trust * spread + (1 - trust) * (wide + (t - mean) ** 2))
    return np.array(means), np.array(variances)


@pytest.mark.parametrize("present", [4, 2])  # 2: some classes stay at their anchor
def test_two_iterations_by_loops(present):
    task, _ = clip_like(**{**SMALL, "present": present})
    guess = text_guess(task)
    wide = anchor_variance(task, guess)
    z = inner_steps(guess, task, guess, task.class_embeddings, [wide] * 4)
    for iterations in (1, 2):
        means, variances = one_update(z, task, wide)
        z = inner_steps(z, task, guess, means, variances)
        prediction = StatA(max_iter=iterations).predict(task)
        np.testing.assert_allclose(prediction.model.density.means, means, atol=1e-10)
        np.testing.assert_allclose(prediction.model.density.variances, variances, atol=1e-10)
        np.testing.assert_allclose(prediction.probabilities, z, atol=1e-10)


def test_objective_is_that_of_the_answer_term_by_term():
    task, _ = clip_like(**SMALL)
    prediction = StatA(max_iter=3).predict(task)
    z, guess, density = prediction.probabilities, text_guess(task), prediction.model.density
    wide = anchor_variance(task, guess)
    graph = directed_graph(task.query, task.query, 3, skip_self=True)
    expected = -0.5 * np.sum((graph + graph.T) / 6 * (z @ z.T))
    for k, t in enumerate(task.class_embeddings):
        mean, variance = density.means[k], density.variances[k]
        for i, x in enumerate(task.query):
            fit = log_density(x, mean, variance) / 50
            expected += z[i, k] * (np.log(z[i, k] / guess[i, k]) - fit)
        moved = (wide + (t - mean) ** 2) / variance
        expected += 0.5 * np.sum(np.log(variance / wide) + moved - 1) / 50
    assert prediction.trace.objective[-1] == pytest.approx(expected)


def test_a_class_without_images_stays_at_its_name():
    task, _ = clip_like(**FEW)
    prediction = StatA().predict(task)
    absent = np.setdiff1d(np.arange(task.n_classes), prediction.labels)
    assert len(absent) > 30
    means = prediction.model.density.means
    np.testing.assert_allclose(means[absent], task.class_embeddings[absent], atol=1e-15)


def test_gains_whether_few_or_all_classes_are_present():
    assert accuracy(StatA()) > accuracy(ZeroShot()) + 0.02
    assert accuracy(StatA(), **FEW) > accuracy(ZeroShot(), **FEW) + 0.05


def test_objective_falls_on_the_whole():
    task, _ = clip_like(**FEW)
    objective = StatA().predict(task).trace.objective
    assert objective[-1] < objective[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("images", [1, 2, 9])
def test_duplicates_are_finite(dtype, images):
    rows = np.repeat(np.array([[1.0, 2.0, 0.0, 0.0]], dtype=dtype), images, axis=0)
    task = Task.from_embeddings(rows, np.eye(3, 4, dtype=dtype), space="embedding")
    probabilities = StatA().predict(task).probabilities
    assert np.isfinite(probabilities).all()
    assert (probabilities.argmax(1) == 1).all()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("anchor", 0.0), ("likelihood_weight", 0.0), ("text_scale", -1.0), ("neighbors", 0)],
)
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        StatA(**{setting: value})
