"""The steps of the automatic method."""

import numpy as np
import pytest

from tests.labeling.stores import NAMES, directions
from transduce.labeling.automatic import (
    choose_method,
    estimate_presence,
    explain,
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


def simulated(images=80, present=(1, 4, 7), noise=0.09, spread=0.08, space="probability"):
    """A task of 12 classes, some of them present."""
    random = np.random.default_rng(0)
    texts = directions(12, spread)
    rows = texts[random.choice(list(present), images)]
    images = rows + noise * random.normal(size=rows.shape)
    return Task.from_embeddings(images, texts, space=space)


def settings(**options):
    return LabelSettings(source="", classes=NAMES, prompts=NAMES, **options)


def test_own_scores_are_the_encoders_own_temperature():
    texts = directions(12)
    images = texts[:5] + 0.1 * np.random.default_rng(0).normal(size=(5, 24))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    own = softmax(own_scores(zero_shot_probabilities(images, texts, 30.0), 30.0))
    np.testing.assert_allclose(own, zero_shot_probabilities(images, texts, 100.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "images", "shots", "name", "reason"),
    [
        ({}, 80, 0, "anchored", "together"),
        ({"method": "anchored"}, 80, 0, "anchored", "as asked"),
        ({}, 1, 0, "zero-shot", "a single image"),
        ({}, 1, 5, "anchored", "together"),
        ({"method": "kl-k-means"}, 80, 0, "kl-k-means", "as asked"),
    ],
)
def test_the_method_is_anchored_unless_asked_otherwise(options, images, shots, name, reason):
    choice = choose_method(settings(**options), simulated(images).zero_shot, shots=shots)
    assert choice.method.name == name
    assert reason in choice.reason


@pytest.mark.parametrize(("given", "used"), [("auto", 3), ("all", 12), (2, 2), (50, 12)])
def test_the_papers_methods_are_given_the_number_of_classes(given, used):
    chosen = settings(method="em-dirichlet", classes_present=given)
    choice = choose_method(chosen, simulated().zero_shot, shots=0)
    assert choice.method.classes_present == used
    assert choice.estimated == (given == "auto")


def test_reported_probabilities_keep_the_labels_of_a_method():
    for options in ({}, {"method": "hard-em-dirichlet", "classes_present": 4}):
        space = "probability" if options else "embedding"
        task = simulated(space=space)
        choice = choose_method(settings(**options), task.zero_shot, shots=0)
        prediction = choice.method.predict(task)
        labels, own = prediction.labels, prediction.probabilities.copy()
        probabilities = label_probabilities(prediction, task, choice)
        np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-5)
        np.testing.assert_array_equal(probabilities.argmax(1), labels)
        assert np.allclose(probabilities, own) == (not options)  # a mixture's are tempered


def test_the_explanation_says_when_the_images_are_not_trusted():
    task = simulated(noise=0.03, spread=0.2, space="embedding")
    choice = choose_method(settings(), task.zero_shot, shots=0)
    trusted = choice.method.predict(task)
    found = trusted.trace.estimates
    assert "few of the classes" in explain(choice, found, task.n_classes)
    assert "agree on" in explain(choice, found, task.n_classes)
    doubtful = {**found, "agreement": 0.3}
    assert "lean on the names" in explain(choice, doubtful, task.n_classes)
