from dataclasses import replace

import numpy as np
import pytest

from transduce import InvalidSetting, InvalidTask, Task
from transduce.methods.tip_adapter import TipAdapter, TipAdapterF


def make_task(shots=4):
    generator = np.random.default_rng(0)
    classes = generator.normal(size=(5, 8))
    seen = classes + generator.normal(size=(5, 8))  # where images of a class really lie
    labels = generator.permutation(np.repeat(np.arange(5), shots))
    return Task.from_embeddings(
        seen[generator.integers(0, 5, 20)] + 0.5 * generator.normal(size=(20, 8)),
        classes,
        support=seen[labels] + 0.5 * generator.normal(size=(len(labels), 8)),
        support_labels=labels,
        space="embedding",
    )


def test_evaluates_its_formula():
    task = make_task()
    expected = np.empty((20, 5))
    for n, x in enumerate(task.query):
        for k in range(5):
            cache = sum(
                np.exp(-2.0 * (1 - x @ shot))
                for shot, label in zip(task.support, task.support_labels, strict=True)
                if label == k
            )
            expected[n, k] = 100 * x @ task.class_embeddings[k] + 3.0 * cache
    expected = np.exp(expected - expected.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    answer = TipAdapter(residual_ratio=3.0, sharpness=2.0).predict(task)
    np.testing.assert_allclose(answer.probabilities, expected, rtol=1e-9, atol=1e-12)


def test_without_the_cache_it_is_zero_shot():
    task = make_task()
    answer = TipAdapter(residual_ratio=0.0).predict(task)
    np.testing.assert_array_equal(answer.labels, task.zero_shot.argmax(1))


def test_gradient_against_finite_differences():
    task = make_task()
    model = replace(TipAdapter().predict(task).model, scale=5.0)
    _, gradient = model.loss_and_gradient(task.support, task.support_labels)

    def loss(keys):
        return replace(model, keys=keys).loss_and_gradient(task.support, task.support_labels)[0]

    for place in [(0, 0), (3, 5), (19, 7)]:
        step = np.zeros_like(model.keys)
        step[place] = 1e-6
        numeric = (loss(model.keys + step) - loss(model.keys - step)) / 2e-6
        assert gradient[place] == pytest.approx(numeric, rel=1e-5, abs=1e-9)


def test_training_lowers_the_loss_of_the_shots():
    trace = TipAdapterF(batch_size=7).predict(make_task()).trace
    assert len(trace.objective) == trace.iterations == 20
    assert trace.objective[-1] < trace.objective[0]


def test_the_seed_decides_the_order_of_the_shots():
    task = make_task()
    answers = [
        TipAdapterF(batch_size=4, seed=seed).predict(task).probabilities for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(answers[0], answers[1])
    assert not np.array_equal(answers[0], answers[2])


@pytest.mark.parametrize("method", [TipAdapter(), TipAdapterF()])
def test_needs_class_embeddings_of_the_same_encoder(method):
    task = make_task()
    with pytest.raises(InvalidTask, match=r"Expected class_embeddings for tip-adapter.*none"):
        method.predict(replace(task, class_embeddings=None))
    with pytest.raises(InvalidTask, match="with 8 columns like the images, found 3"):
        method.predict(replace(task, class_embeddings=np.ones((5, 3))))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("residual_ratio", -1), ("sharpness", 0), ("scale", 0), ("epochs", 0), ("batch_size", 0),
     ("learning_rate", 0)],
)  # fmt: skip
def test_refuses_senseless_settings(setting, value):
    with pytest.raises(InvalidSetting, match=setting):
        TipAdapterF(**{setting: value})
