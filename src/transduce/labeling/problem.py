"""What a labeling run solves, and the columns of its solution.

Class probabilities are kept of all classes, or in large runs of the likeliest of each image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from transduce.features.store import FeatureStore
from transduce.labeling.automatic import MethodChoice
from transduce.labeling.settings import EVERYTHING, LabelSettings
from transduce.labeling.views import View
from transduce.methods.anchored.columns import first_classes
from transduce.methods.anchored.drift import Drift
from transduce.methods.anchored.model import AnchoredModel
from transduce.methods.anchored.passes import BEST
from transduce.methods.anchored.past import Past
from transduce.methods.mixture import MixtureModel

KEPT_ENTRIES = 1 << 26  # image x class; of larger runs the best classes of each image are kept
SOFTER = 0.6  # of the encoder's own scale

Rows = Int[np.ndarray, " image"]
Probabilities = Float32[np.ndarray, "image class"]


@dataclass(frozen=True, slots=True)
class Shots:
    """Labeled images from outside the batch."""

    embeddings: Float32[np.ndarray, "shot feature"]
    labels: Int[np.ndarray, " shot"]
    view: Float32[np.ndarray, "shot view"] | None = None  # by the encoder of the view

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def none(cls, dimension: int) -> "Shots":
        """Return no shots of `dimension` features."""
        return cls(np.zeros((0, dimension), np.float32), np.zeros(0, np.int64))

    def joined(self, other: "Shots") -> "Shots":
        """Return these shots followed by the other ones."""
        if not len(self):
            return other
        view = None
        if self.view is not None and other.view is not None:
            view = np.concatenate([self.view, other.view])
        return Shots(
            np.concatenate([self.embeddings, other.embeddings]),
            np.concatenate([self.labels, other.labels]),
            view,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The images, the classes, and what is known of the images beforehand."""

    store: FeatureStore
    class_embeddings: Float32[np.ndarray, "class feature"]
    settings: LabelSettings
    shots: Shots
    fixed: Mapping[int, int] = field(default_factory=dict)  # class index of each corrected row
    truth: Rows | None = None  # class index of each row; UNKNOWN where it is not known
    view: View | None = None  # the images as another encoder sees them
    image_paths: Mapping[str, str] = field(default_factory=dict)  # of --images, by file name
    ignored: int = 0  # files of the source that are no images
    videos: int = 0  # of these
    past: Past | None = None  # of the images before, with --like

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.class_embeddings)

    def batches(self) -> list[Rows]:
        """Return the row numbers of each batch, increasing.

        More than one batch are random parts of the whole, because neighbors in a folder are rarely
        a fair sample of it.
        """
        n_images = len(self.store)
        size = self.settings.batch
        if size == EVERYTHING or int(size) >= n_images:
            return [np.arange(n_images)]
        order = np.random.default_rng(self.settings.seed).permutation(n_images)
        return [np.sort(part) for part in np.array_split(order, -(-n_images // int(size)))]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSummary:
    """How one batch was solved."""

    images: int
    method: str
    classes_present: int  # what the weight of the method came from
    iterations: int
    converged: bool
    objective: tuple[float, ...]
    seconds: float
    estimates: Mapping[str, float] = field(default_factory=dict)  # of the batch, by the method
    explanation: str = ""  # how its labels came about, in one sentence


@dataclass(frozen=True, slots=True)
class BestClasses:
    """The likeliest classes of each image with their probabilities; the others count as 0."""

    classes: Int[np.ndarray, "image best"]
    probabilities: Float32[np.ndarray, "image best"]
    n_classes: int

    @classmethod
    def empty(cls, n_images: int, n_classes: int) -> "BestClasses":
        """Return arrays to be filled with the best classes of so many images."""
        shape = (n_images, min(BEST, n_classes))
        classes = np.tile(np.arange(shape[1], dtype=np.int32), (n_images, 1))
        return cls(classes, np.zeros(shape, np.float32), n_classes)

    def __len__(self) -> int:
        return len(self.classes)


Posterior = Float32[np.ndarray, "image class"] | BestClasses


@dataclass(slots=True)
class Solution:
    """Columns in the order of the store, filled batch by batch; `probabilities` may be on disk."""

    probabilities: Posterior
    label: Rows
    top: Float32[np.ndarray, "image two"]
    entropy: Float32[np.ndarray, " image"]
    zero_shot_label: Rows
    zero_shot_score: Float32[np.ndarray, " image"]
    distance: Float32[np.ndarray, " image"]
    names_entropy: Float32[np.ndarray, " image"]  # between how many classes an image lies
    doubt: Float32[np.ndarray, " image"]
    neighbors: Float32[np.ndarray, " image"]  # the share of alike images with the same label
    strange: Bool[np.ndarray, " image"]  # far from every class beside the images before
    choices: list[MethodChoice] = field(default_factory=list)
    batches: list[BatchSummary] = field(default_factory=list)
    models: list[MixtureModel | AnchoredModel] = field(default_factory=list)
    drift: Drift | None = None  # how the images differ from those before, with --like

    @classmethod
    def empty(cls, probabilities: Posterior) -> "Solution":
        """Return columns of zeros around the room for the probabilities."""
        n = len(probabilities)
        return cls(
            probabilities=probabilities,
            label=np.zeros(n, np.int64),
            top=np.zeros((n, 2), np.float32),
            entropy=np.zeros(n, np.float32),
            zero_shot_label=np.zeros(n, np.int64),
            zero_shot_score=np.zeros(n, np.float32),
            distance=np.zeros(n, np.float32),
            names_entropy=np.zeros(n, np.float32),
            doubt=np.zeros(n, np.float32),
            neighbors=np.ones(n, np.float32),
            strange=np.zeros(n, bool),
        )


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


def top_two(
    probabilities: Probabilities,
) -> tuple[Int[np.ndarray, " image"], Float32[np.ndarray, "image two"]]:
    """Return the likeliest class (image,) and the two largest probabilities (image, 2)."""
    label = probabilities.argmax(1)
    best = np.take_along_axis(probabilities, label[:, np.newaxis], 1)[:, 0]
    second = np.partition(probabilities, -2, axis=1)[:, -2]
    return label, np.stack([best, second], 1)


def entropy_share(probabilities: Probabilities) -> Float32[np.ndarray, " image"]:
    """Return the entropy over its maximum log K: 0 for one certain class, 1 for all alike."""
    positive = np.maximum(probabilities, np.finfo(np.float32).tiny)
    entropy = -(probabilities * np.log(positive)).sum(1) / np.log(probabilities.shape[1])
    return np.clip(entropy, 0.0, 1.0).astype(np.float32)


def names_entropy(scores: Float[np.ndarray, "image class"]) -> Float32[np.ndarray, " image"]:
    """Return the entropy of softmax(0.6 scores) of each image: between how many classes it lies.

    An image of no class lies between many, one that is hard to tell between two look-alikes. The
    encoder's own probabilities are so sharp that they show little but look-alikes.

    Parameters
    ----------
    scores : array of shape (image, class)
        100 x cosine, up to a constant per row.
    """
    softer = SOFTER * (scores - scores.max(1, keepdims=True))
    shares = np.exp(softer)
    total = shares.sum(1)
    entropy = np.log(total) - np.einsum("ik,ik->i", shares, softer) / total
    return entropy.astype(np.float32, copy=False)
