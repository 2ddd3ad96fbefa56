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
)
from scipy.special import iv
from scipy.stats import vonmises_fisher

from transduce import InvalidSetting, Moon, Task, ZeroShot
from transduce.methods.moon import _log_bessel, directional_density

pytestmark = pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")


def steps_by_loops(task, guess, weight, steps):
    """The printed steps; densities by scipy."""
    n_queries, dimension = task.query.shape
    n_classes = task.n_classes
    graph = directed_graph(task.query, task.query, 3, skip_self=True)
    means = list(task.class_embeddings)
    lengths, anchors = [], []
    for k, t in enumerate(means):
        y = guess[:, k]
        lengths.append(sum(y[i] * (x @ t) for i, x in enumerate(task.query)) / y.sum())
        anchors.append(1 / np.sqrt(y.mean() * y.max()))
    z = guess
    for _ in range(steps):
        densities = []
        for mean, r in zip(means, lengths, strict=True):
            kappa = (dimension * r - r**3) / (1 - r**2)
            densities.append(vonmises_fisher(mean, kappa))
        z = np.array(
            [
                softmax(
                    [
                        np.log(guess[i, k])
                        + weight * densities[k].logpdf(x / np.linalg.norm(x))
                        + sum(graph[i, j] * z[j, k] for j in range(n_queries))
                        for k in range(n_classes)
                    ]
                )
                for i, x in enumerate(task.query)
            ]
        )
        trust_in = [1 + sum(p * np.log(p) for p in row if p > 0) / np.log(n_classes) for row in z]
        for k, t in enumerate(task.class_embeddings):
            count = sum(g for g, row in zip(trust_in, z, strict=True) if row.argmax() == k)
            share = count / (count + anchors[k])
            weights = [g * row[k] for g, row in zip(trust_in, z, strict=True)]
            average = sum(w * x for w, x in zip(weights, task.query, strict=True)) / sum(weights)
            resultant = share * average + (1 - share) * t
            lengths[k] = np.linalg.norm(resultant)
            means[k] = resultant / lengths[k]
    return z


@pytest.mark.parametrize("weight", [1.0, 0.001])
@pytest.mark.parametrize("steps", [1, 2])
def test_steps_by_loops(weight, steps):
    # A seed with images of each class and mean cosines above 0, where nothing is clipped.
    task, _ = clip_like(**{**SMALL, "features": 24}, seed=3)
    guess = text_guess(task, scale=20.0)
    assert len(set(guess.argmax(1))) == 4
    expected = steps_by_loops(task, guess, weight, steps)
    method = Moon(likelihood_weight=weight, max_iter=steps, text_scale=20.0)
    np.testing.assert_allclose(method.predict(task).probabilities, expected, atol=1e-9)


@pytest.mark.parametrize("order", [0.0, 0.5, 5.0, 40.0])
def test_bessel_function_is_that_of_scipy(order):
    x = np.array([0.5, 3.0, 60.0, 300.0])
    np.testing.assert_allclose(_log_bessel(order, x), np.log(iv(order, x)), rtol=1e-9, atol=1e-12)


def test_bessel_function_where_it_underflows():
    # log I_v(x) = v log(x / 2) - log Gamma(v + 1) + log sum, whose sum is 1 + x^2 / 4 (v + 1) + ...
    from scipy.special import gammaln

    order, x = 511.0, np.array([2.0])
    terms = [(x[0] ** 2 / 4) ** m / np.exp(gammaln(m + 1)) / np.prod(order + np.arange(1, m + 1))
             for m in range(8)]  # fmt: skip
    expected = order * np.log(x / 2) - gammaln(order + 1) + np.log(sum(terms))
    np.testing.assert_allclose(_log_bessel(order, x), expected, atol=1e-5)


def test_density_is_the_von_mises_fisher_density():
    mean = np.array([[0.6, 0.0, 0.8]])
    density = directional_density(mean, np.array([0.5]))
    kappa = (3 * 0.5 - 0.125) / 0.75
    rows = np.eye(3)
    expected = vonmises_fisher(mean[0], kappa).logpdf(rows)
    np.testing.assert_allclose(density.log_density(rows)[:, 0], expected, atol=1e-12)


def test_a_small_weight_gains_whether_few_or_all_classes_are_present():
    method = Moon(likelihood_weight=0.001)
    assert accuracy(method) > accuracy(ZeroShot()) + 0.02
    assert accuracy(method, **FEW) > accuracy(ZeroShot(), **FEW) + 0.05


def test_as_printed_it_is_unsafe():
    assert accuracy(Moon(), **FEW) < accuracy(Moon(likelihood_weight=0.001), **FEW) - 0.02


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("images", [1, 2, 9])
@pytest.mark.parametrize("weight", [1.0, 0.001])
def test_duplicates_are_finite(dtype, images, weight):
    rows = np.repeat(np.array([[1.0, 2.0, 0.0, 0.0]], dtype=dtype), images, axis=0)
    task = Task.from_embeddings(rows, np.eye(3, 4, dtype=dtype), space="embedding")
    assert np.isfinite(Moon(likelihood_weight=weight).predict(task).probabilities).all()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("likelihood_weight", -1.0), ("text_scale", 0.0), ("neighbors", 0), ("max_iter", 0)],
)
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        Moon(**{setting: value})
