"""How a label is decided: steps 1 to 4 of docs/labeling.md, in their order.

1. `estimate_presence`: which of the classes the batch holds. 2. and 3. `choose_method`: whether
there is anything to learn from the batch, and whether assignments are hard or soft.
4. `label_probabilities`: the method's densities, tempered, and each image's own evidence.
The constants were measured on real features, in results/labeling_choice.md.
"""

import math
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float, Float32, Int

from transduce.labeling.settings import AUTO, EVERYTHING, LabelSettings
from transduce.methods import METHODS, Method
from transduce.methods.em_dirichlet import EMDirichlet, HardEMDirichlet
from transduce.methods.mixture import MixtureModel
from transduce.methods.zero_shot import ZeroShot
from transduce.simplex.probabilities import blocks, softmax
from transduce.task import Prediction, Task

OWN_TEMPERATURE = 100.0  # the scale that CLIP-like encoders are trained to: their own confidence
SMALLEST = 1e-37  # keeps log(0) out
PRESENCE_ROWS = 4096  # images that the proportions are estimated from, evenly spaced in the batch
PRESENCE_ITERATIONS = 50
SOFT_ABOVE = 0.55  # share of the classes present above which assignments are soft


def own_scores(
    zero_shot: Float[np.ndarray, "image class"], temperature: float
) -> Float[np.ndarray, "image class"]:
    """Return 100 x cosine, up to a constant per row, from softmax(temperature x cosine)."""
    logs = np.log(np.maximum(zero_shot, SMALLEST), dtype=np.float64)
    return logs * (OWN_TEMPERATURE / temperature)


# Step 1: how many classes are present.


@dataclass(frozen=True, slots=True)
class PresenceEstimate:
    """Which classes a batch holds, and how often zero-shot expects to be wrong on it.

    `classes` are the indices of those present; `expected_error` is the share of zero-shot's
    labels that are wrong by its own confidence.
    """

    classes: Int[np.ndarray, " present"]
    expected_error: float


def estimate_presence(
    zero_shot: Float[np.ndarray, "image class"], temperature: float
) -> PresenceEstimate:
    """Return the classes whose estimated share of the batch is at least one image.

    The proportions are fitted by EM with the encoder's probabilities held fixed (Saerens,
    Latinne and Decaestecker, 2002).
    """
    rows = np.unique(np.linspace(0, len(zero_shot) - 1, PRESENCE_ROWS).round().astype(np.int64))
    own = softmax(own_scores(zero_shot[rows], temperature))
    shares = np.full(own.shape[1], 1.0 / own.shape[1])
    for _ in range(PRESENCE_ITERATIONS):
        joint = own * shares
        shares = (joint / joint.sum(1, keepdims=True)).mean(0)
    present = np.flatnonzero(shares * len(rows) >= 1.0)
    if not present.size:  # fewer images than classes, each of them spread over many classes
        present = np.array([shares.argmax()])
    return PresenceEstimate(present, float(1.0 - own.max(1).mean()))


# Steps 2 and 3: is there anything to learn, and hard or soft assignments.


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """The method for a batch with its settings, and the reason for it in words."""

    method: Method
    presence: PresenceEstimate
    classes_present: int
    estimated: bool  # whether `classes_present` is an estimate
    blended: bool  # whether each image's own evidence is added (step 4)
    reason: str


def choose_method(
    settings: LabelSettings, zero_shot: Float[np.ndarray, "image class"], *, shots: int
) -> MethodChoice:
    """Return the method for these images; --method and --classes-present overrule estimates."""
    n_classes = zero_shot.shape[1]
    presence = estimate_presence(zero_shot, settings.temperature)
    estimated = settings.classes_present == AUTO
    count = len(presence.classes)
    if settings.classes_present == EVERYTHING:
        count = n_classes
    elif not estimated:
        count = min(int(settings.classes_present), n_classes)
    if settings.method != AUTO:
        method, reason = named_method(settings.method, count), "as asked"
    else:
        learnable = bool(shots) or not estimated
        method, reason = _automatic(presence, count, zero_shot.shape, learnable=learnable)
    return MethodChoice(method, presence, count, estimated, settings.method == AUTO, reason)


def _automatic(
    presence: PresenceEstimate, count: int, shape: tuple[int, ...], *, learnable: bool
) -> tuple[Method, str]:
    """Return the method of `--method auto` and why; `learnable` skips the test of step 2."""
    n_images, n_classes = shape
    if n_images == 1:
        return ZeroShot(), "a single image has no batch to learn from"
    expected_wrong = presence.expected_error * n_images
    if expected_wrong < count and not learnable:
        return ZeroShot(), (
            f"by its own confidence it is wrong on about {expected_wrong:,.0f} of {n_images:,} "
            f"images, too few to learn {count:,} classes from"
        )
    if count > SOFT_ABOVE * n_classes:
        return EMDirichlet(classes_present=count), "most of the classes are present"
    return HardEMDirichlet(classes_present=count), "few of the classes are present"


def named_method(name: str, classes_present: int) -> Method:
    """Return the method of that name, with `classes_present` if it has that setting."""
    method = METHODS[name]
    if "classes_present" in {field.name for field in fields(method)}:
        return method(classes_present=classes_present)
    return method()


# Step 4: each image's own evidence is weighed in.


def label_probabilities(
    prediction: Prediction, task: Task, choice: MethodChoice
) -> Float32[np.ndarray, "image class"]:
    """Return the class probabilities to report. Overwrites `prediction.probabilities`.

    A Dirichlet density multiplies one factor per class and is overconfident, so that its log is
    divided by their number. With the automatic method the image's own softmax(100 cos) is
    multiplied in, and the batch decides what the image leaves open.
    """
    own = choice.blended or isinstance(choice.method, ZeroShot)
    model = prediction.model if isinstance(prediction.model, MixtureModel) else None
    probabilities = prediction.probabilities
    if model is None and not own:
        return probabilities.astype(np.float32, copy=False)
    divisor = _density_divisor(task, blended=choice.blended)
    for rows in blocks(*probabilities.shape):
        scores: Float[np.ndarray, "row class"] = np.zeros(probabilities[rows].shape)
        if own:
            scores += own_scores(task.zero_shot[rows], task.temperature)
        if model is not None:
            scores += model.tempered(task.query[rows], divisor)
        probabilities[rows] = softmax(scores)
    return probabilities.astype(np.float32, copy=False)


def _density_divisor(task: Task, *, blended: bool) -> float:
    """Return what log densities are divided by; shots make the classes better known."""
    width = float(task.query.shape[1])
    if not blended or task.support is None:
        return width
    return width / math.sqrt(1.0 + len(task.support) / task.n_classes)
