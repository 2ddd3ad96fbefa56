import numpy as np
import pytest
from rival_tasks import SMALL, accuracy, clip_like, softmax

from transduce import GDACLIP, METHODS, InvalidSetting, InvalidTask, Task, ZeroShot
from transduce.methods.method import without_convergence_warnings

RIVALS = ("gda-clip", "prior-shift", "transclip", "stata", "moon", "zlap")


def test_logits_by_loops():
    task, _ = clip_like(**SMALL, shots=3)
    means = [task.support[task.support_labels == k].mean(0) for k in range(4)]
    n_shots, dimension = task.support.shape
    covariance = np.zeros((dimension, dimension))
    for x, k in zip(task.support, task.support_labels, strict=True):
        covariance += np.outer(x - means[k], x - means[k]) / (n_shots - 1)
    ridge = (n_shots - 1) * covariance + np.trace(covariance) * np.eye(dimension)
    precision = dimension * np.linalg.pinv(ridge)
    expected = np.empty((task.n_queries, 4))
    for i, x in enumerate(task.query):
        expected[i] = softmax(
            [
                100 * x @ t + 0.3 * (x @ precision @ mean - 0.5 * mean @ precision @ mean)
                for t, mean in zip(task.class_embeddings, means, strict=True)
            ]
        )
    np.testing.assert_allclose(GDACLIP(alpha=0.3).predict(task).probabilities, expected, atol=1e-9)


def test_gains_with_four_shots():
    assert accuracy(GDACLIP(), shots=4) > accuracy(ZeroShot(), shots=4) + 0.02


@pytest.mark.parametrize(("alpha", "shots"), [(0.0, 4), (1.0, 1)])
def test_without_weight_or_spread_it_is_zero_shot(alpha, shots):
    task, _ = clip_like(images=40, shots=shots)
    expected = ZeroShot().predict(task).labels
    np.testing.assert_array_equal(GDACLIP(alpha=alpha).predict(task).labels, expected)


@pytest.mark.parametrize("name", RIVALS)
def test_needs_class_embeddings_of_the_same_encoder(name):
    task, _ = clip_like(**SMALL, shots=2)
    method = METHODS[name]()
    arrays = {field: getattr(task, field) for field in ("query", "zero_shot", "support")}
    arrays |= {"support_labels": task.support_labels, "space": "embedding"}
    with pytest.raises(InvalidTask, match=rf"Expected class_embeddings for {name}, found none"):
        method.predict(Task(**arrays))
    with pytest.raises(InvalidTask, match="were they made by the same encoder"):
        method.predict(Task(**arrays, class_embeddings=np.eye(4, 5)))


@pytest.mark.parametrize("name", RIVALS)
def test_length_of_embeddings_does_not_matter(name):
    task, _ = clip_like(**SMALL, shots=2)
    method = METHODS[name]()
    longer = Task(
        query=3 * task.query,
        zero_shot=task.zero_shot,
        support=2 * task.support,
        support_labels=task.support_labels,
        class_embeddings=5 * task.class_embeddings,
        space="embedding",
    )
    with without_convergence_warnings():
        expected = method.predict(task).probabilities
        np.testing.assert_allclose(method.predict(longer).probabilities, expected, atol=1e-9)


@pytest.mark.parametrize(("setting", "value"), [("alpha", -1.0), ("text_scale", 0.0)])
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        GDACLIP(**{setting: value})
