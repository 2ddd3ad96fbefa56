"""ZLaP: label propagation from the class names to the images, over a graph of both.

Stojnić, Kalantidis, Tolias, "Label Propagation for Zero-shot Classification with Vision-Language
Models", CVPR 2024. The nodes are K class names and N images. Every image is linked to its 5 nearest
images by their cosine and to its 5 nearest names by cosine^5 (image-text cosines are smaller than
image-image ones), negative cosines as 0. With A = W + W', D its row sums, S = D^-1/2 A D^-1/2 and E
the indicator of the names, X minimizes

    1/2 tr X' (I - a S) X  -  tr X' E,      that is,   (I - a S) X = E,      a = 0.3

by X = E + a S X, again and again: each step shrinks the error by a at least. The row of an image,
scaled to sum to 1, is its answer. A new image is linked likewise and takes the sum of its
neighbors' rows: one more step of the same iteration.

Use it where all classes are present in many images and neighbors can be trusted (whole
sets: +1 point over zero-shot on six real sets). Avoid it where few of many classes are
present: names of absent classes spread as far as the others (16 images: -21 points; 64
images of 1 to 4 classes: -31).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float
from scipy.sparse import block_array, csr_array, diags_array

from transduce.errors import InvalidSetting
from transduce.methods.method import Support, accept, warn_unless_converged
from transduce.methods.neighbors import nearest_neighbors, neighbor_graph
from transduce.methods.prototypes import directions
from transduce.methods.text_guess import log_text_guess, unit_embeddings
from transduce.simplex.threads import one_blas_thread
from transduce.task import Prediction, Space, Task, Trace
from transduce.validation import at_least_zero, positive, whole_from_one


@final
@dataclass(frozen=True, kw_only=True)
class ZLaP:
    """Label a batch jointly by propagation from class names over a graph of images.

    Zero-shot; shots are not used. For batches in which all classes are present.

    Parameters
    ----------
    neighbors : int, default=5
        Images, and names, that each image is linked to.
    text_power : float, default=5.0
        Power of the image-text cosines: larger means fewer names count.
    propagation : float, default=0.3
        a, at least 0 and below 1: how far labels flow. Near 0 the nearest names decide.
    text_scale : float, default=100.0
        Of the encoder's guess softmax(text_scale cos), the answer for an image that no name
        reaches; no other image depends on it.
    max_iter : int, default=25
        Iterations, at most; 25 are enough for double precision at a = 0.3.
    tolerance : float, default=1e-6
        Largest change of an image's score, relative to the largest of them, at which they have
        converged.

    References
    ----------
    Stojnić, Kalantidis, Tolias, "Label Propagation for Zero-shot Classification with
    Vision-Language Models", CVPR 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Task, ZLaP
    >>> random, classes, labels = np.random.default_rng(0), np.eye(4), np.arange(40) % 4
    >>> images = classes[labels] + random.normal(0, 0.2, (40, 4))
    >>> task = Task.from_embeddings(images, classes, space="embedding")
    >>> bool((ZLaP().predict(task).labels == labels).all())
    True
    """

    name: ClassVar[str] = "zlap"
    spaces: ClassVar[tuple[Space, ...]] = ("embedding",)
    support: ClassVar[Support] = "unused"
    inductive: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    neighbors: int = 5
    text_power: float = 5.0
    propagation: float = 0.3
    text_scale: float = 100.0
    max_iter: int = 25
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        whole_from_one("neighbors", self.neighbors)
        whole_from_one("max_iter", self.max_iter)
        positive("text_power", self.text_power)
        positive("text_scale", self.text_scale)
        at_least_zero("tolerance", self.tolerance)
        at_least_zero("propagation", self.propagation)
        if self.propagation >= 1:
            raise InvalidSetting(f"Expected propagation below 1, found {self.propagation!r}.")

    def predict(self, task: Task) -> Prediction:
        """Label all queries jointly; warn if the scores had not settled."""
        accept(self, task)
        query, classes = unit_embeddings(self, task)
        with one_blas_thread(query.size * len(query)):
            to_images = nearest_neighbors(query, query, self.neighbors, skip_self=True)
            links = _links_to_names(query, classes, self.neighbors, self.text_power)
            graph = neighbor_graph(to_images, len(query))
            flow, roots = _normalized(graph, links)
            flow.data *= self.propagation
            scores, trace = self._propagate(flow, len(classes))
        warn_unless_converged(self, trace)
        shares = scores / roots[:, np.newaxis]
        model = ZLaPModel(classes, query, shares, self.neighbors, self.text_power, self.text_scale)
        answer = _as_probabilities(scores[len(classes) :], query, classes, self.text_scale)
        return Prediction(probabilities=answer, trace=trace, model=model)

    def _propagate(
        self, flow: csr_array, n_classes: int
    ) -> tuple[Float[np.ndarray, "node class"], Trace]:
        """Solve X = E + flow X, names before images; trace the quadratic objective."""
        following = _step(flow, np.eye(flow.shape[0], n_classes, dtype=flow.dtype))
        objective: list[float] = []
        converged = False
        while not converged and len(objective) < self.max_iter:
            scores, following = following, _step(flow, following)
            residual = scores - following  # (I - flow) X - E, at no further product
            images = slice(n_classes, None)
            change = np.abs(residual[images]).max()
            converged = bool(change <= self.tolerance * scores[images].max())
            objective.append(0.5 * float(np.vdot(scores, residual) - np.trace(scores)))
        return scores, Trace(tuple(objective), len(objective), converged)


@dataclass(frozen=True)
class ZLaPModel:
    """Classifier of new images: linked to the graph of the batch, one step of propagation."""

    classes: Float[np.ndarray, "class feature"]
    query: Float[np.ndarray, "query feature"]
    shares: Float[np.ndarray, "node class"]  # D^-1/2 X, names before images
    neighbors: int
    text_power: float
    text_scale: float

    def probabilities(
        self, rows: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row class"]:
        """Class probabilities (row, class) of new images, each by itself."""
        unit = directions(rows)
        to_images = nearest_neighbors(unit, self.query, self.neighbors, skip_self=False)
        to_names = _links_to_names(unit, self.classes, self.neighbors, self.text_power)
        scores = to_names @ self.shares[: len(self.classes)]
        scores += neighbor_graph(to_images, len(self.query)) @ self.shares[len(self.classes) :]
        return _as_probabilities(scores, unit, self.classes, self.text_scale)


def _links_to_names(
    unit: Float[np.ndarray, "row feature"],
    classes: Float[np.ndarray, "class feature"],
    count: int,
    power: float,
) -> csr_array:
    """Return the links (row, class) to the nearest names: cosine^power, negative cosines as 0."""
    links = neighbor_graph(nearest_neighbors(unit, classes, count, skip_self=False), len(classes))
    links.data **= power
    return links


def _normalized(
    to_images: csr_array, to_names: csr_array
) -> tuple[csr_array, Float[np.ndarray, " node"]]:
    """Return S = D^-1/2 (W + W') D^-1/2, names before images, and D^1/2 (1 without links)."""
    adjacency = block_array([[None, to_names.T], [to_names, to_images + to_images.T]], format="csr")
    roots = np.sqrt(adjacency.sum(1))
    roots[roots == 0] = 1.0
    scale = diags_array(1.0 / roots)
    return csr_array(scale @ adjacency @ scale), roots


def _step(
    flow: csr_array, scores: Float[np.ndarray, "node class"]
) -> Float[np.ndarray, "node class"]:
    following = flow @ scores
    names = np.arange(scores.shape[1])
    following[names, names] += 1.0
    return following


def _as_probabilities(
    scores: Float[np.ndarray, "row class"],
    unit: Float[np.ndarray, "row feature"],
    classes: Float[np.ndarray, "class feature"],
    text_scale: float,
) -> Float[np.ndarray, "row class"]:
    """Return rows scaled to sum to one; the encoder's guess where no name reaches an image."""
    sums = scores.sum(1, keepdims=True)
    probabilities = scores / np.where(sums > 0, sums, 1.0)
    lost = sums[:, 0] <= 0
    if lost.any():
        probabilities[lost] = np.exp(log_text_guess(unit[lost], classes, text_scale))
    return probabilities
