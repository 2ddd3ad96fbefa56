"""What a labeling run solves, and the columns of its solution."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float32, Int

from transduce.features.store import FeatureStore
from transduce.labeling.automatic import MethodChoice
from transduce.labeling.posterior import Posterior
from transduce.labeling.settings import EVERYTHING, LabelSettings
from transduce.labeling.views import View
from transduce.methods.anchored.model import AnchoredModel
from transduce.methods.anchored.past import Drift, Past
from transduce.methods.mixture import MixtureModel

Rows = Int[np.ndarray, " image"]


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
