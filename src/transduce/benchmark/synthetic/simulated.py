"""A simulated batch with the habits of CLIP's embeddings, where no model or picture is at hand.

Class embeddings come in groups of semantic neighbors. Images lie in a cone of their own, lean to
their class, and scatter; on top, whole classes are confused systematically, because the encoder
sees a class where its name does not point: nearer to a neighbor. It is that shift, common to
the images of a class, which a batch reveals and a single image does not.
"""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from jaxtyping import Float, Int

from transduce.errors import InvalidSetting
from transduce.methods.method import Method, without_convergence_warnings
from transduce.task import Space, Task

DIMENSION = 256
GROUP = 5  # classes that are semantic neighbors of each other
NEIGHBORHOOD = 0.55  # how much of a class embedding its group shares
CONFUSION = 0.3  # how far the images of a class lean to a neighboring class, at most
OWN_SHIFT = 0.8  # what the images of a class share that no text describes
SCATTER = 0.8  # of single images
BATCHES = 20  # of the table that `main` prints
ALIGNMENT = 0.32  # of images with texts, small as in CLIP: two cones apart


@dataclass(frozen=True)
class SimulatedBatch:
    """A task and, beside it, the truth."""

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
    """Images of `classes_present` of the classes, with `shots` labeled ones of every class."""
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
    """As many images of every class, their classes, and the embeddings of the class names."""
    random = np.random.default_rng([seed, n_classes, per_class])
    texts, centers = _world(random, n_classes)
    labels = np.repeat(np.arange(n_classes), per_class)
    return _images(random, centers, labels), labels, texts


def _world(
    random: np.random.Generator, n_classes: int
) -> tuple[Float[np.ndarray, "class feature"], Float[np.ndarray, "class feature"]]:
    """Embeddings of the class names, and where the images of each class gather."""
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
    unit: Float[np.ndarray, "row feature"] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def main() -> None:
    """Every method on the same batches: a table of accuracy and time."""
    from transduce.methods import METHODS  # here, so that simulating needs no method

    zero_shot = [simulate(seed=seed) for seed in range(BATCHES)]
    few_shot = [simulate(seed=seed, shots=4) for seed in range(BATCHES)]
    print(f"{BATCHES} SIMULATED batches (no pictures, no encoder), each of 75 images of 7 of 100")
    print("classes. Mean accuracy in %, and time of one batch. 4-shot: with 4 labeled images")
    print("of every class.")
    print(f"\n{'method':<24}{'zero-shot':>20}{'4-shot':>20}")
    for name, method in METHODS.items():
        try:
            built = method()
        except InvalidSetting:  # it cannot go without a text tower, and there is none here
            print(f"{name:<24}{'needs an encoder':>20}{'needs an encoder':>20}")
            continue
        cells = [_measured(built, batches) for batches in (zero_shot, few_shot)]
        print(f"{name:<24}{cells[0]:>20}{cells[1]:>20}")
    print("\nzero-shot labels each image alone; the others label the batch jointly.")


def _measured(method: Method, batches: list[SimulatedBatch]) -> str:
    first = batches[0].task
    if method.support == "needed" and first.support is None:
        return "needs shots"
    if method.support == "unused" and first.support is not None:
        return "takes no shots"
    if first.space not in method.spaces:
        return f"{method.spaces[0]} space"
    with without_convergence_warnings():
        method.predict(first)  # compiles, or loads what was compiled
        start = perf_counter()
        predictions = [method.predict(batch.task) for batch in batches]
        seconds = (perf_counter() - start) / len(batches)
    right = [p.labels == b.labels for p, b in zip(predictions, batches, strict=True)]
    return f"{100 * np.mean(right):5.1f}  {1000 * seconds:7.1f} ms"


if __name__ == "__main__":
    main()
