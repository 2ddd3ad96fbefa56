"""The class probabilities of a run: of all classes, or in large runs of the best of each image."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int

from transduce.labeling.review_reasons import entropy_share, top_two
from transduce.methods.anchored.columns import first_classes
from transduce.methods.anchored.passes import BEST

KEPT_ENTRIES = 1 << 26  # image x class; of larger runs the best classes of each image are kept

Rows = Int[np.ndarray, " image"]


@dataclass(frozen=True, slots=True)
class BestClasses:
    """The likeliest classes of each image with their probabilities; the others count as 0."""

    classes: Int[np.ndarray, "image best"]
    probabilities: Float32[np.ndarray, "image best"]
    n_classes: int

    @classmethod
    def empty(cls, n_images: int, n_classes: int) -> "BestClasses":
        """Room for the best classes of so many images."""
        shape = (n_images, min(BEST, n_classes))
        classes = np.tile(np.arange(shape[1], dtype=np.int32), (n_images, 1))
        return cls(classes, np.zeros(shape, np.float32), n_classes)

    def __len__(self) -> int:
        return len(self.classes)


Posterior = Float32[np.ndarray, "image class"] | BestClasses


def dense(
    classes: Int[np.ndarray, "row best"],
    probabilities: Float32[np.ndarray, "row best"],
    n_classes: int,
) -> Float32[np.ndarray, "row class"]:
    """The probabilities of all classes, from those of the best."""
    whole = np.zeros((len(classes), n_classes), np.float32)
    np.put_along_axis(whole, classes, probabilities, 1)
    return whole


def part_of(kept: Posterior, rows: slice) -> Posterior:
    """The probabilities of some images."""
    if isinstance(kept, BestClasses):
        return BestClasses(kept.classes[rows], kept.probabilities[rows], kept.n_classes)
    return kept[rows]


def keeps_all(n_images: int, n_classes: int) -> bool:
    """Whether the probabilities of all classes of a run are kept."""
    return n_images * n_classes <= KEPT_ENTRIES


def put(kept: Posterior, rows: Rows, block: Float32[np.ndarray, "row class"]) -> None:
    """Keep the probabilities of these rows."""
    if not isinstance(kept, BestClasses):
        kept[rows] = block
        return
    kept.classes[rows], kept.probabilities[rows] = likeliest_of(block, kept.classes.shape[1])


def likeliest_of(
    block: Float32[np.ndarray, "row class"], count: int
) -> tuple[Int[np.ndarray, "row best"], Float32[np.ndarray, "row best"]]:
    """The likeliest classes of each row, and their probabilities."""
    best = first_classes(block, count)
    return best, np.take_along_axis(block, best, 1)


def put_best(
    kept: Posterior,
    rows: Rows,
    classes: Int[np.ndarray, "row best"],
    probabilities: Float32[np.ndarray, "row best"],
) -> None:
    """Keep the probabilities of the best classes of these rows, the others being 0."""
    if isinstance(kept, BestClasses):
        kept.classes[rows], kept.probabilities[rows] = classes, probabilities
    else:
        kept[rows] = dense(classes, probabilities, kept.shape[1])


def top_and_entropy(
    probabilities: Float32[np.ndarray, "row best"], n_classes: int
) -> tuple[Float32[np.ndarray, "row two"], Float32[np.ndarray, " row"]]:
    """The two largest probabilities of each row, and its entropy over log K; of the best alone."""
    _, top = top_two(probabilities)
    share = entropy_share(probabilities) * np.log(probabilities.shape[1]) / np.log(n_classes)
    return top, share.astype(np.float32)
