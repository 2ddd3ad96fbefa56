"""The method for a batch, said aloud.

What decides was measured on real features (docs/labeling.md): hard assignments gain most where
few of the classes are present, soft ones where most are; and where zero-shot is wrong less often
than there are classes to learn, the batch has nothing to teach.
"""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float

from transduce.labeling.presence import Presence, estimate_presence
from transduce.labeling.settings import AUTO, EVERYTHING, LabelSettings
from transduce.methods import METHODS, Method
from transduce.methods.em_dirichlet import EMDirichlet, HardEMDirichlet
from transduce.methods.zero_shot import ZeroShot

MOST_PRESENT = 0.55  # of the classes: above this share, assignments are soft


@dataclass(frozen=True, slots=True)
class Choice:
    """A method with its settings, and why."""

    method: Method
    presence: Presence
    classes_present: int
    estimated: bool
    blended: bool  # whether each image's own evidence is weighed in
    reason: str


def choose(
    settings: LabelSettings, zero_shot: Float[np.ndarray, "image class"], *, shots: int
) -> Choice:
    """The method for these images; the user's word wins over every estimate."""
    n_images, n_classes = zero_shot.shape
    presence = estimate_presence(zero_shot, settings.temperature)
    estimated = settings.classes_present == AUTO
    count = len(presence.classes)
    if not estimated:
        given = settings.classes_present
        count = n_classes if given == EVERYTHING else min(int(given), n_classes)
    method, reason = _method(settings, presence, count, n_images, n_classes, shots)
    return Choice(method, presence, count, estimated, settings.method == AUTO, reason)


def _method(
    settings: LabelSettings,
    presence: Presence,
    count: int,
    n_images: int,
    n_classes: int,
    shots: int,
) -> tuple[Method, str]:
    if settings.method != AUTO:
        return _named(settings.method, count), "as asked"
    if n_images == 1:
        return ZeroShot(), "a single image has no batch to learn from"
    doubtful = presence.doubt * n_images
    if doubtful < count and settings.classes_present == AUTO and not shots:
        return ZeroShot(), (
            f"by its own confidence it is wrong on about {doubtful:,.0f} of {n_images:,} images, "
            f"too few to learn {count:,} classes from"
        )
    if count > MOST_PRESENT * n_classes:
        return EMDirichlet(classes_present=count), "most of the classes are present"
    return HardEMDirichlet(classes_present=count), "few of the classes are present"


def _named(name: str, count: int) -> Method:
    method = METHODS[name]
    if "classes_present" in {field.name for field in fields(method)}:
        return method(classes_present=count)  # type: ignore[call-arg]
    return method()
