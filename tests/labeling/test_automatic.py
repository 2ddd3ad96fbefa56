"""The steps of the automatic method."""

import numpy as np
import pytest

from tests.labeling.stores import NAMES, directions
from transduce.labeling.automatic import (
    choose_method,
    estimate_presence,
    label_probabilities,
    own_scores,
)
from transduce.labeling.settings import LabelSettings
from transduce.simplex.probabilities import softmax, zero_shot_probabilities
from transduce.task import Task


def test_presence_counts_the_classes_that_are_there():
    random = np.random.default_rng(0)
    truth = random.choice([2, 5, 6], 200)
    logits = 3.0 * np.eye(20)[truth] + random.normal(size=(200, 20)) * 0.7
    zero_shot = np.exp(logits * 0.3)
    zero_shot /= zero_shot.sum(1, keepdims=True)
    presence = estimate_presence(zero_shot, 30.0)
    assert presence.classes.tolist() == [2, 5, 6]
    assert 0.0 < presence.expected_error < 1.0


def simulated(images=80, present=(1, 4, 7), noise=0.09, spread=0.08):
    """A task of 12 classes, some of them present."""
    random = np.random.default_rng(0)
    texts = directions(12, spread)
    rows = texts[random.choice(list(present), images)]
    return Task.from_embeddings(rows + noise * random.normal(size=rows.shape), texts)


def settings(**options):
    return LabelSettings(source="", classes=NAMES, prompts=NAMES, **options)


def test_own_scores_are_the_encoders_own_temperature():
    texts = directions(12)
    images = texts[:5] + 0.1 * np.random.default_rng(0).normal(size=(5, 24))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    own = softmax(own_scores(zero_shot_probabilities(images, texts, 30.0), 30.0))
    np.testing.assert_allclose(own, zero_shot_probabilities(images, texts, 100.0), rtol=1e-6)


CLEAR = simulated(20, range(12), noise=0.03, spread=0.2)  # zero-shot is sure of every image


@pytest.mark.parametrize(
    ("options", "task", "name", "reason"),
    [
        ({}, simulated(), "hard-em-dirichlet", "few of the classes are present"),
        ({}, simulated(600, range(12), 0.12), "em-dirichlet", "most of the classes are present"),
        ({}, simulated(1), "zero-shot", "a single image"),
        ({}, CLEAR, "zero-shot", "too few to learn"),
        ({"classes_present": 2}, CLEAR, "hard-em-dirichlet", "few"),
        ({"classes_present": "all"}, simulated(), "em-dirichlet", "most"),
        ({"method": "kl-k-means"}, simulated(), "kl-k-means", "as asked"),
    ],
)
def test_the_method_follows_from_the_batch(options, task, name, reason):
    choice = choose_method(settings(**options), task.zero_shot, shots=0)
    assert choice.method.name == name
    assert reason in choice.reason
    assert choice.estimated == ("classes_present" not in options)
    assert choice.blended == ("method" not in options)


def test_a_method_asked_for_keeps_its_labels_and_auto_adds_the_images_evidence():
    task = simulated()
    for options in ({}, {"method": "hard-em-dirichlet", "classes_present": 4}):
        choice = choose_method(settings(**options), task.zero_shot, shots=0)
        prediction = choice.method.predict(task)
        labels = prediction.labels
        probabilities = label_probabilities(prediction, task, choice)
        np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-5)
        if options:
            np.testing.assert_array_equal(probabilities.argmax(1), labels)
        else:
            tempered = prediction.model.tempered(task.query, 12.0)
            both = softmax(own_scores(task.zero_shot, task.temperature) + tempered)
            np.testing.assert_allclose(probabilities, both, atol=1e-6)
