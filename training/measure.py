"""Accuracy of an encoder on drawings: zero-shot, and with transduction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int

from training.drawn import Drawn, as_pixels, draw_set
from training.settings import Settings
from transduce.benchmark.synthetic import SEEN, UNSEEN, name_of
from transduce.benchmark.synthetic.things import Pair
from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Encoder
from transduce.encoders.prompts import DEFAULT_TEMPLATE, sentences
from transduce.methods import METHODS
from transduce.methods.em_dirichlet import HardEMDirichlet
from transduce.simplex.probabilities import softmax
from transduce.task import Task

LOGIT_SCALE = Settings.logit_scale
TEST_SEED = 2024  # never the seed of training
QUERIES = 75  # of a task, as in the paper
PRESENT = (3, 10)  # classes of a task, as in the paper
COMPARED = ("zero-shot", "em-dirichlet", "hard-em-dirichlet", "soft-k-means")


@dataclass(frozen=True)
class Features:
    """Embedded images of some pairs, and the index of each image's pair."""

    images: Float32[np.ndarray, "image feature"]
    labels: Int[np.ndarray, " image"]
    pairs: tuple[Pair, ...]


def embed_set(encoder: Encoder, drawn: Drawn, pairs: Sequence[Pair]) -> Features:
    """Return the embeddings of drawings, with their labels."""
    parts = np.array_split(drawn.images, max(1, len(drawn.images) // 500))
    images = np.concatenate([encoder.embed_images(as_pixels(part)) for part in parts])
    index_of = {pair: index for index, pair in enumerate(pairs)}
    labels = np.array([index_of[thing.color, thing.shape] for thing in drawn.things])
    return Features(images, labels, tuple(pairs))


def embed_names(encoder: Encoder, pairs: Sequence[Pair]) -> Float32[np.ndarray, "class feature"]:
    """Return the embeddings of the class names."""
    names = ClassNames.of(name_of(pair) for pair in pairs)
    return encoder.embed_texts(sentences(names.prompts, DEFAULT_TEMPLATE))


def zero_shot_accuracy(encoder: Encoder, features: Features, also: Sequence[Pair] = ()) -> float:
    """Return the accuracy when an image may be any of its set's pairs, or one of `also`."""
    names = embed_names(encoder, [*features.pairs, *also])
    return float(((features.images @ names.T).argmax(1) == features.labels).mean())


def expected_accuracy(encoder: Encoder, features: Features) -> float:
    """Return how often softmax(100 cos) expects to be right among the pairs of the set."""
    names = embed_names(encoder, features.pairs)
    return float(softmax(LOGIT_SCALE * (features.images @ names.T)).max(1).mean())


def accuracies(encoder: Encoder, images: int) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return, by pairs and look, the accuracy among the set's pairs, as expected, among all 120."""
    shares = {}
    for kind, pairs, others in (("seen", SEEN, UNSEEN), ("unseen", UNSEEN, SEEN)):
        for look in ("training", "shifted"):
            features = embed_set(encoder, draw_set(pairs, images, look, TEST_SEED), pairs)
            shares[kind, look] = (
                zero_shot_accuracy(encoder, features),
                expected_accuracy(encoder, features),
                zero_shot_accuracy(encoder, features, others),
            )
    return shares


def transduction(
    encoder: Encoder, features: Features, tasks: int, methods: Sequence[str] = COMPARED
) -> dict[str, tuple[float, float]]:
    """Return mean accuracy and its 95 % interval over the paper's zero-shot tasks, by method."""
    names = embed_names(encoder, features.pairs)
    scores: dict[str, list[float]] = {name: [] for name in methods}
    for number in range(tasks):
        generator = np.random.default_rng([TEST_SEED, number])
        count = generator.integers(PRESENT[0], PRESENT[1] + 1)
        present = generator.choice(len(features.pairs), count, replace=False)
        pool = np.flatnonzero(np.isin(features.labels, present))
        chosen = generator.choice(pool, QUERIES, replace=False)
        task = Task.from_embeddings(features.images[chosen], names)
        for name in methods:
            labels = METHODS[name]().predict(task).labels
            scores[name].append(float((labels == features.labels[chosen]).mean()))
    return {
        name: (float(np.mean(values)), float(1.96 * np.std(values) / np.sqrt(tasks)))
        for name, values in scores.items()
    }


def all_at_once(encoder: Encoder, features: Features) -> dict[str, float]:
    """Return the accuracy when every class is present, where the default weight breaks."""
    task = Task.from_embeddings(features.images, embed_names(encoder, features.pairs))
    methods = {
        "zero-shot": METHODS["zero-shot"](),
        "hard-em-dirichlet": HardEMDirichlet(),
        'hard-em-dirichlet, classes_present="all"': HardEMDirichlet(classes_present="all"),
    }
    return {
        name: float((method.predict(task).labels == features.labels).mean())
        for name, method in methods.items()
    }
