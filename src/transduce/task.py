"""The nouns every layer shares: a Task goes into a method, a Prediction comes out."""

from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from transduce import validation
from transduce.errors import InvalidTask
from transduce.simplex.probabilities import zero_shot_probabilities

Space = Literal["probability", "embedding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem: label every query at once.

    `query` holds rows on the simplex (`space="probability"`) or image embeddings
    (`space="embedding"`); `zero_shot` is the encoder's own guess, softmax(T cos), in both spaces.
    A support set, if there is one, has at least one shot of every class; with `partial_support`
    (a few corrections, say) some classes may have none. Arrays keep their precision (float32 or
    float64) and are not copied; whatever does not fit is refused here.
    """

    query: Float[np.ndarray, "query feature"]
    zero_shot: Float[np.ndarray, "query class"]
    support: Float[np.ndarray, "shot feature"] | None = None
    support_labels: Int[np.ndarray, " shot"] | None = None
    class_embeddings: Float[np.ndarray, "class embedding"] | None = None
    temperature: float = 30.0
    space: Space = "probability"
    partial_support: bool = False

    def __post_init__(self) -> None:
        if self.space not in get_args(Space):
            raise InvalidTask(
                f"Expected space to be one of {get_args(Space)}, found {self.space!r}."
            )
        validation.positive("temperature", self.temperature)
        zero_shot = validation.simplex_rows("zero_shot", self.zero_shot)
        query = zero_shot if self.query is self.zero_shot else self._features("query", self.query)
        self._set("zero_shot", zero_shot)
        self._set("query", query)
        if self.n_classes < 2:
            raise InvalidTask("Expected at least 2 classes, found 1; add the alternatives.")
        validation.same_length("query", query, "zero_shot", zero_shot)
        validation.probability_width(self.space, query, self.n_classes)
        if (self.support is None) != (self.support_labels is None):
            given = "support" if self.support_labels is None else "support_labels"
            raise InvalidTask(
                f"Expected support and support_labels together, found only {given}; give both."
            )
        if self.support is not None:
            self._set("support", self._features("support", self.support))
            validation.same_width("support", self.support, "query", query)
            labels = validation.class_indices("support_labels", self.support_labels, self.n_classes)
            self._set("support_labels", labels)
            validation.same_length("support", self.support, "support_labels", labels)
            if not self.partial_support:
                validation.every_class_present("support_labels", labels, self.n_classes)
        if self.class_embeddings is not None:
            embeddings = validation.nonzero_rows("class_embeddings", self.class_embeddings)
            self._set("class_embeddings", embeddings)
            validation.as_many("class_embeddings", embeddings, "classes", self.n_classes)

    def _features(self, name: str, rows: ArrayLike) -> Float[np.ndarray, "row feature"]:
        if self.space == "probability":
            return validation.simplex_rows(name, rows)
        return validation.nonzero_rows(name, rows)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def n_queries(self) -> int:
        return len(self.query)

    @property
    def n_classes(self) -> int:
        return int(self.zero_shot.shape[1])

    @classmethod
    def from_embeddings(
        cls,
        images: ArrayLike,
        classes: ArrayLike,
        *,
        support: ArrayLike | None = None,
        support_labels: ArrayLike | None = None,
        temperature: float = 30.0,
        space: Space = "probability",
    ) -> "Task":
        """The task of labeling `images` (query, feature) with `classes` (class, feature).

        Both are embeddings of one CLIP-like encoder, of any length: they are normalized here.
        In the probability space every image becomes softmax(temperature * cosines).
        """
        validation.positive("temperature", temperature)
        unit_images = validation.unit_rows("images", images)
        unit_classes = validation.unit_rows("classes", classes)
        validation.same_width("classes", unit_classes, "images", unit_images)
        zero_shot = zero_shot_probabilities(unit_images, unit_classes, temperature)
        shots = None
        if support is not None:
            shots = validation.unit_rows("support", support)
            validation.same_width("support", shots, "images", unit_images)
            if space == "probability":
                shots = zero_shot_probabilities(shots, unit_classes, temperature)
        return cls(
            query=zero_shot if space == "probability" else unit_images,
            zero_shot=zero_shot,
            support=shots,
            support_labels=support_labels,  # type: ignore[arg-type]  # checked and converted there
            class_embeddings=unit_classes,
            temperature=temperature,
            space=space,
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """How the answer was reached: the penalized objective after each iteration, and its end."""

    objective: tuple[float, ...]
    iterations: int
    converged: bool
    seconds: float


@runtime_checkable
class Classifier(Protocol):
    """What a method learnt, applicable to one new image at a time."""

    def probabilities(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row class"]: ...


@dataclass(frozen=True, slots=True)
class Prediction:
    """Class probabilities of every query and how they came about.

    A method that clusters also tells which cluster each query is in and which class each
    cluster was matched with (-1: an empty cluster); `probabilities` is already in classes.
    """

    probabilities: Float[np.ndarray, "query class"]
    trace: Trace
    clusters: Int[np.ndarray, " query"] | None = None
    class_of_cluster: Int[np.ndarray, " class"] | None = None
    model: Classifier | None = None

    @property
    def labels(self) -> Int[np.ndarray, " query"]:
        """The class of each query, after matching where the method needs one."""
        if self.clusters is None or self.class_of_cluster is None:
            labels: Int[np.ndarray, " query"] = self.probabilities.argmax(1)
            return labels
        matched: Int[np.ndarray, " query"] = self.class_of_cluster[self.clusters]
        return matched
