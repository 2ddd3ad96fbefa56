"""How a label is decided, in the order of docs/labeling.md.

1. `choose_method`: `--method auto` is `anchored`; a single image is left to zero-shot.
2. `label_probabilities`: the probabilities to report. Those of `anchored` are calibrated already;
   those of zero-shot are at the scale its encoder was trained to; those of mixtures are tempered.
3. `explain`: the answer in one sentence, from what the method estimated of the batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float, Float32, Int

from transduce.labeling.settings import AUTO, EVERYTHING, LabelSettings
from transduce.methods import METHODS, Method
from transduce.methods.anchored import Anchored
from transduce.methods.mixture import MixtureModel
from transduce.methods.zero_shot import ZeroShot
from transduce.simplex.probabilities import blocks, softmax
from transduce.task import Prediction, Task

OWN_TEMPERATURE = 100.0  # the scale that CLIP-like encoders are trained to: their own confidence
SMALLEST = 1e-37  # keeps log(0) out
PRESENCE_ROWS = 4096  # images that the proportions are estimated from, evenly spaced in the batch
PRESENCE_ENTRIES = 1 << 23  # image x class of them, at most
PRESENCE_ITERATIONS = 50
FEW = 0.5  # of the classes
LITTLE_TRUST = 0.5  # agreement of images and names below which the images hardly count


def own_scores(
    zero_shot: Float[np.ndarray, "image class"], temperature: float
) -> Float[np.ndarray, "image class"]:
    """Return 100 x cosine, up to a constant per row, from softmax(temperature x cosine)."""
    logs = np.log(np.maximum(zero_shot, SMALLEST), dtype=np.float64)
    return logs * (OWN_TEMPERATURE / temperature)


@dataclass(frozen=True, slots=True)
class PresenceEstimate:
    """Which classes a batch holds, and how often zero-shot expects to be wrong on it.

    `classes` are the indices of those present; `expected_error` is the share of zero-shot's
    labels that are wrong by its own confidence.
    """

    classes: Int[np.ndarray, " present"]
    expected_error: float


def presence_sample(n_images: int, n_classes: int) -> Int[np.ndarray, " chosen"]:
    """Return the rows of a batch that `estimate_presence` looks at."""
    most = min(PRESENCE_ROWS, max(1, PRESENCE_ENTRIES // n_classes))
    return np.unique(np.linspace(0, n_images - 1, most).round().astype(np.int64))


def estimate_presence(
    zero_shot: Float[np.ndarray, "image class"], temperature: float
) -> PresenceEstimate:
    """Return the classes whose estimated share of the batch is at least one image.

    The proportions are fitted by EM with the encoder's probabilities held fixed (Saerens,
    Latinne and Decaestecker, 2002).
    """
    rows = presence_sample(*zero_shot.shape)
    own = softmax(own_scores(zero_shot[rows], temperature))
    shares = np.full(own.shape[1], 1.0 / own.shape[1])
    for _ in range(PRESENCE_ITERATIONS):
        joint = own * shares
        shares = (joint / joint.sum(1, keepdims=True)).mean(0)
    present = np.flatnonzero(shares * len(rows) >= 1.0)
    if not present.size:  # fewer images than classes, each of them spread over many classes
        present = np.array([shares.argmax()])
    return PresenceEstimate(present, float(1.0 - own.max(1).mean()))


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """The method for a batch, with what the batch looks like to zero-shot."""

    method: Method
    presence: PresenceEstimate
    classes_present: int
    estimated: bool  # whether `classes_present` is an estimate
    reason: str  # why this method, in words


def choose_method(
    settings: LabelSettings,
    zero_shot: Float[np.ndarray, "image class"],
    *,
    shots: int,
    n_images: int | None = None,
) -> MethodChoice:
    """Return the method for these images; `--classes-present` is for the paper's methods.

    `zero_shot` is the guess at all of them, or at those of `presence_sample` if there are
    `n_images`.
    """
    n_images, n_classes = n_images or len(zero_shot), zero_shot.shape[1]
    presence = estimate_presence(zero_shot, settings.temperature)
    estimated = settings.classes_present == AUTO
    count = len(presence.classes)
    if settings.classes_present == EVERYTHING:
        count = n_classes
    elif not estimated:
        count = min(int(settings.classes_present), n_classes)
    if settings.method != AUTO:
        method, reason = named_method(settings.method, count, settings.iterations), "as asked"
    elif n_images == 1 and not shots:
        method, reason = ZeroShot(), "a single image has no batch to learn from"
    else:
        method, reason = Anchored(), "labels all images together"
    return MethodChoice(method, presence, count, estimated, reason)


def named_method(name: str, classes_present: int, iterations: int = 0) -> Method:
    """Return the method of that name, with `classes_present` if it has that setting.

    `iterations` is its `max_iter`, 0 for that of its paper; the method may refuse it.
    """
    method = METHODS[name]
    known = {field.name for field in fields(method)}
    options: dict[str, int] = {}
    if "classes_present" in known:
        options["classes_present"] = classes_present
    if iterations:
        options["max_iter"] = iterations
    return method(**options)


def has_iterations(name: str) -> bool:
    """Whether the steps of the method of that name can be limited."""
    return "max_iter" in {field.name for field in fields(METHODS[name])}


def label_probabilities(
    prediction: Prediction, task: Task, choice: MethodChoice
) -> Float32[np.ndarray, "image class"]:
    """Return the class probabilities to report. Overwrites `prediction.probabilities`.

    A Dirichlet density multiplies one factor per class and is overconfident, so that the log
    density of a mixture is divided by their number.
    """
    probabilities, model = prediction.probabilities, prediction.model
    if isinstance(choice.method, ZeroShot):
        for rows in blocks(*probabilities.shape):
            probabilities[rows] = softmax(own_scores(task.zero_shot[rows], task.temperature))
    elif isinstance(model, MixtureModel):
        for rows in blocks(*probabilities.shape):
            probabilities[rows] = softmax(model.tempered(task.query[rows], task.query.shape[1]))
    return probabilities.astype(np.float32, copy=False)


def explain(choice: MethodChoice, estimates: Mapping[str, float], n_classes: int) -> str:
    """Return how the labels came about, in one sentence that needs no statistics.

    `estimates` are those of the method's trace.
    """
    if not isinstance(choice.method, Anchored):
        return choice.reason
    if estimates["agreement"] < LITTLE_TRUST:
        return (
            "images that look alike rarely have the same best name here, so that the labels "
            "lean on the names alone, nearly as one by one"
        )
    few_present = estimates["classes_present"] < FEW * n_classes
    few = "few of the classes seem to be here, and " if few_present else ""
    return (
        f"{few}images that look alike help each other: names and looks agree on "
        f"{estimates['agreement']:.0%} of them"
    )
