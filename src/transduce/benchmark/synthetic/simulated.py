"""Simulated batches of embeddings that vary as CLIP's do, without a model or images.

Class embeddings come in groups of semantic neighbors. Images lie in a cone of their own, lean to
their class, and scatter; on top, whole classes are confused systematically, because the encoder
sees a class where its name does not point: nearer to a neighbor. It is that shift, common to
the images of a class, which a batch reveals and a single image does not.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from transduce.task import Space, Task

DIMENSION = 256
GROUP = 5  # classes that are semantic neighbors of each other
NEIGHBORHOOD = 0.55  # how much of a class embedding its group shares
CONFUSION = 0.3  # how far the images of a class lean to a neighboring class, at most
OWN_SHIFT = 0.8  # what the images of a class share that no text describes
SCATTER = 0.8  # of single images
ALIGNMENT = 0.32  # of images with texts, small as in CLIP: two cones apart


@dataclass(frozen=True)
class SimulatedBatch:
    """A task and, beside it, the true labels of its queries."""

    task: Task
    labels: Int[np.ndarray, " query"]


def simulate(
    *,
    n_classes: int = 100,
    n_queries: int = 75,
    classes_present: int = 7,
    shots: int = 0,
    space: Space = "probability",
    seed: int = 0,
) -> SimulatedBatch:
    """Return a batch of images of some classes, with `shots` labeled ones of every class."""
    random = np.random.default_rng([seed, n_classes, n_queries, classes_present, shots])
    texts, centers = _world(random, n_classes)
    present = random.choice(n_classes, classes_present, replace=False)
    labels = random.choice(present, n_queries)
    images = _images(random, centers, labels)
    support_labels = np.repeat(np.arange(n_classes), shots)
    task = Task.from_embeddings(
        images,
        texts,
        support=_images(random, centers, support_labels) if shots else None,
        support_labels=support_labels if shots else None,
        space=space,
    )
    return SimulatedBatch(task, labels)


def simulate_images(
    *, n_classes: int, per_class: int, seed: int = 0
) -> tuple[
    Float[np.ndarray, "image feature"],
    Int[np.ndarray, " image"],
    Float[np.ndarray, "class feature"],
]:
    """Return images (`per_class` of every class), their labels, and class embeddings."""
    random = np.random.default_rng([seed, n_classes, per_class])
    texts, centers = _world(random, n_classes)
    labels = np.repeat(np.arange(n_classes), per_class)
    return _images(random, centers, labels), labels, texts


def _world(
    random: np.random.Generator, n_classes: int
) -> tuple[Float[np.ndarray, "class feature"], Float[np.ndarray, "class feature"]]:
    """Return embeddings of the class names, and the centers of the images of each class."""
    groups = _directions(random, -(-n_classes // GROUP))
    own = _directions(random, n_classes)
    group = np.arange(n_classes) // GROUP
    texts = _unit(NEIGHBORHOOD * groups[group] + (1.0 - NEIGHBORHOOD) * own)
    # The neighbor a class is mistaken for: another of its group, or the next class if alone.
    offset = np.arange(n_classes) % GROUP
    neighbor = np.minimum(group * GROUP + (offset + 1) % GROUP, n_classes - 1)
    lean = random.uniform(0.0, CONFUSION, (n_classes, 1))
    seen = _unit((1.0 - lean) * texts + lean * texts[neighbor])
    cone = _directions(random, 1)
    shared = OWN_SHIFT * _directions(random, n_classes)
    return texts, ALIGNMENT * seen + shared + cone


def _images(
    random: np.random.Generator,
    centers: Float[np.ndarray, "class feature"],
    labels: Int[np.ndarray, " image"],
) -> Float[np.ndarray, "image feature"]:
    return _unit(centers[labels] + SCATTER * _directions(random, len(labels)))


def _directions(random: np.random.Generator, count: int) -> Float[np.ndarray, "row feature"]:
    return _unit(random.standard_normal((count, DIMENSION)))


def _unit(rows: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
