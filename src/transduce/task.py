"""`Task`, what a method is given; `Prediction` and `Trace`, what it returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from transduce import validation
from transduce.errors import InvalidTask
from transduce.simplex.probabilities import zero_shot_probabilities

Space = Literal["probability", "embedding"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """One problem: label a batch of images (the queries) jointly.

    `Task.from_embeddings` builds one from the outputs of an encoder. Arrays keep their precision
    (float32 or float64) and are not copied; arrays that contradict each other are refused. Tasks
    compare by identity.

    Parameters
    ----------
    query : array of shape (query, feature)
        What methods work on: rows on the simplex in the probability space (feature = class), or
        image embeddings in the embedding space.
    zero_shot : array of shape (query, class)
        The encoder's own answer softmax(T cos), rows on the simplex, in both spaces.
    support : array of shape (shot, feature), optional
        Labeled images in the same space as `query`; few-shot methods need them.
    support_labels : array of int of shape (shot,), optional
        Class index 0 .. K - 1 of each shot; given together with `support`.
    class_embeddings : array of shape (class, embedding), optional
        The encoder's text embedding of each class; some methods need them.
    view : array of shape (query, view feature), optional
        Embeddings of the same images by another encoder, which needs no text tower. `Anchored`
        then compares images with each other by these, and with class names by `class_embeddings`.
        Other methods ignore them.
    support_view : array of shape (shot, view feature), optional
        Embeddings of the shots by the encoder of the view; needed if there are both.
    temperature : float, default=30.0
        T of softmax(T cos). 30 is the paper's choice for joint labeling: at CLIP's own 100 the
        probabilities are nearly one-hot, and the shape of their distribution is lost.
    space : {"probability", "embedding"}, default="probability"
        What `query` and `support` hold. The Dirichlet methods need "probability", the adapters
        "embedding"; `METHODS[name].spaces` lists them.
    partial_support : bool, default=False
        True: some classes may be without shots (a few corrections, say). Otherwise a support
        that lacks a class is refused. Taken by `Anchored` and mixtures that start from zero-shot.

    Raises
    ------
    InvalidTask
        If arrays contradict each other, have NaN or infinity, or rows that are no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Task
    >>> probabilities = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> task = Task(query=probabilities, zero_shot=probabilities)
    >>> task.n_queries, task.n_classes
    (3, 2)
    """

    query: Float[np.ndarray, "query feature"]
    zero_shot: Float[np.ndarray, "query class"]
    support: Float[np.ndarray, "shot feature"] | None = None
    support_labels: Int[np.ndarray, " shot"] | None = None
    class_embeddings: Float[np.ndarray, "class embedding"] | None = None
    view: Float[np.ndarray, "query view"] | None = None
    support_view: Float[np.ndarray, "shot view"] | None = None
    temperature: float = 30.0
    space: Space = "probability"
    partial_support: bool = False

    def __post_init__(self) -> None:
        if self.space not in get_args(Space):
            raise InvalidTask(
                f"Expected space to be one of {get_args(Space)}, found {self.space!r}."
            )
        validation.positive("temperature", self.temperature, InvalidTask)
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
            labels = validation.label_vector("support_labels", self.support_labels, self.n_classes)
            self._set("support_labels", labels)
            validation.same_length("support", self.support, "support_labels", labels)
            if not self.partial_support:
                validation.every_class_present("support_labels", labels, self.n_classes)
        if self.class_embeddings is not None:
            embeddings = validation.nonzero_rows("class_embeddings", self.class_embeddings)
            self._set("class_embeddings", embeddings)
            validation.as_many("class_embeddings", embeddings, "classes", self.n_classes)
        self._check_view()

    def _check_view(self) -> None:
        if (self.support_view is None) != (self.view is None or self.support is None):
            raise InvalidTask(
                "Expected support_view just if there are a view and a support, found "
                f"{'none' if self.support_view is None else 'one'}; give the shots as seen by "
                "the encoder of the view, or leave the view out."
            )
        if self.view is None:
            return
        self._set("view", validation.nonzero_rows("view", self.view))
        validation.same_length("view", self.view, "query", self.query)
        if self.support_view is not None and self.support is not None:
            self._set("support_view", validation.nonzero_rows("support_view", self.support_view))
            validation.same_width("support_view", self.support_view, "view", self.view)
            validation.same_length("support_view", self.support_view, "support", self.support)

    def _features(self, name: str, rows: ArrayLike) -> Float[np.ndarray, "row feature"]:
        if self.space == "probability":
            return validation.simplex_rows(name, rows)
        return validation.nonzero_rows(name, rows)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def n_queries(self) -> int:
        """Number of images to label."""
        return len(self.query)

    @property
    def n_classes(self) -> int:
        """Number of classes K, present in the batch or not."""
        return int(self.zero_shot.shape[1])

    @classmethod
    def from_embeddings(
        cls,
        images: ArrayLike,
        classes: ArrayLike,
        *,
        support: ArrayLike | None = None,
        support_labels: ArrayLike | None = None,
        view: ArrayLike | None = None,
        support_view: ArrayLike | None = None,
        temperature: float = 30.0,
        space: Space = "probability",
        partial_support: bool = False,
    ) -> "Task":
        """Build a task from the embeddings of one CLIP-like encoder.

        Embeddings may have any length: they are normalized here. In the probability space every
        image becomes softmax(temperature * cosines).

        Parameters
        ----------
        images : array of shape (query, feature)
            Embeddings of the images to label.
        classes : array of shape (class, feature)
            Text embedding of each class.
        support : array of shape (shot, feature), optional
            Embeddings of labeled images.
        support_labels : array of int of shape (shot,), optional
            Class index of each of them.
        view : array of shape (query, view feature), optional
            Embeddings of the same images by another encoder, for methods that compare images.
        support_view : array of shape (shot, view feature), optional
            Embeddings of the labeled images by that encoder.
        temperature : float, default=30.0
            T of softmax(T cos).
        space : {"probability", "embedding"}, default="probability"
            What the method is to work on.
        partial_support : bool, default=False
            Whether some classes may be without shots.

        Returns
        -------
        Task
            With `class_embeddings` set to the unit vectors of `classes`.

        Examples
        --------
        >>> import numpy as np
        >>> from transduce import Task
        >>> task = Task.from_embeddings([[1.0, 0.1], [0.1, 2.0]], np.eye(2))
        >>> task.query.argmax(1).tolist()
        [0, 1]
        """
        validation.positive("temperature", temperature, InvalidTask)
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
            view=None if view is None else validation.unit_rows("view", view),
            support_view=(
                None if support_view is None else validation.unit_rows("support_view", support_view)
            ),
            temperature=temperature,
            space=space,
            partial_support=partial_support,
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """How an answer was reached.

    Parameters
    ----------
    objective : tuple of float
        The objective (lower is better) after each iteration; empty if nothing is minimized.
    iterations : int
        Iterations that were done; 0 for methods in closed form.
    converged : bool
        False if the answer still changed in the last iteration.
    estimates : mapping of str to float, optional
        What the method estimated of the batch on its way, by name; each method documents its own.

    Examples
    --------
    >>> from transduce import Trace
    >>> Trace(objective=(3.0, 2.5, 2.4), iterations=3, converged=False).objective[-1]
    2.4
    """

    objective: tuple[float, ...]
    iterations: int
    converged: bool
    estimates: Mapping[str, float] = field(default_factory=dict)


@runtime_checkable
class Classifier(Protocol):
    """What a method learned, applicable to new images one at a time."""

    def probabilities(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row class"]:
        """Class probabilities (row, class) of images in the space of the fitted task."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Class probabilities of every query and how they were reached; compares by identity.

    Parameters
    ----------
    probabilities : array of shape (query, class)
        Rows on the simplex, in the precision of the task; a new array.
    trace : Trace
        Objective, iterations and convergence.
    clusters : array of int of shape (query,), optional
        The cluster of each query, for methods that cluster.
    class_of_cluster : array of int of shape (class,), optional
        The class that each cluster was matched with; -1 for a cluster without members.
    model : Classifier, optional
        Labels new images one at a time, as the batch was labeled.
    evidence : mapping of str to array of shape (query,), optional
        Parts of the evidence for the label of each query, by name; a method that has them
        documents the names. They decide no label; the doubt of a label is computed from them.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import METHODS, Task
    >>> prediction = METHODS["zero-shot"]().predict(Task.from_embeddings(np.eye(3), np.eye(3)))
    >>> prediction.labels.tolist(), prediction.trace.converged
    ([0, 1, 2], True)
    """

    probabilities: Float[np.ndarray, "query class"]
    trace: Trace
    clusters: Int[np.ndarray, " query"] | None = None
    class_of_cluster: Int[np.ndarray, " class"] | None = None
    model: Classifier | None = None
    evidence: Mapping[str, Float[np.ndarray, " query"]] = field(default_factory=dict)

    @property
    def labels(self) -> Int[np.ndarray, " query"]:
        """Class index (query,) of each query, after matching where the method needs one."""
        if self.clusters is None or self.class_of_cluster is None:
            return self.probabilities.argmax(1)
        return self.class_of_cluster[self.clusters]
