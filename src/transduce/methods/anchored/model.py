"""What `Anchored` learned of a batch: its classes, for new images one at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float, Float32, Int

from transduce.methods.anchored.batch import Rows
from transduce.methods.anchored.columns import first_classes
from transduce.methods.anchored.drift import Drift
from transduce.methods.anchored.passes import BEST
from transduce.methods.anchored.past import MEMORY, Past
from transduce.methods.anchored.remembering import past_of
from transduce.methods.anchored.steps import AnchoredState, Moments
from transduce.methods.prototypes import directions
from transduce.mixtures.collapsed import CollapsedGaussians
from transduce.mixtures.presence import PresencePrior
from transduce.mixtures.within import solve_rows
from transduce.simplex.probabilities import softmax

PAST = "past."  # before the names of its arrays


def tempered(scores: Float[np.ndarray, "row best"], power: float) -> Float[np.ndarray, "row best"]:
    """softmax(power scores), the first of each row staying the first."""
    chosen = softmax(scores * scores.dtype.type(power))
    second = np.nextafter(chosen[:, 1:].max(1), chosen.dtype.type(1.0))
    chosen[:, 0] = np.maximum(chosen[:, 0], second)
    return chosen


@final
@dataclass(frozen=True)
class LearnedClasses:
    """What was learned of the images of a batch, in the features they are compared by."""

    classes: CollapsedGaussians
    scale: Float32[np.ndarray, " feature"]
    root: Float32[np.ndarray, "feature feature"] | None
    past: Past | None = None  # None in files of older versions


@final
@dataclass(frozen=True)
class AnchoredModel:
    """The classes of a labeled batch, for new images one at a time.

    New images do not vote and are not counted; all else is as in the batch. What a small batch
    learned is put into features when it is first asked for: that takes as long as the batch.
    """

    texts: Rows
    prior: PresencePrior
    image_weight: float
    middle: Float32[np.ndarray, " feature"]
    power: float
    learned: LearnedClasses | Callable[[], LearnedClasses]

    @cached_property
    def _learned(self) -> LearnedClasses:
        return self.learned() if callable(self.learned) else self.learned

    @property
    def classes(self) -> CollapsedGaussians:
        """The classes as Gaussians."""
        return self._learned.classes

    @property
    def past(self) -> Past | None:
        """The images of the batch, remembered or as sums, for images that come later."""
        return self._learned.past

    def arrays(self) -> dict[str, np.ndarray]:
        """The model as arrays by name, to be kept in a file; `from_arrays` reads them."""
        prior, classes = self.prior, self.classes
        numbers = (
            prior.bias_variance, prior.concentration, classes.within, classes.total,
            self.image_weight, self.power,
        )  # fmt: skip
        arrays = {
            "texts": self.texts,
            "counts": prior.mass,
            "sums": classes.sums,
            "mass": classes.mass,
            "pseudo_images": classes.pseudo_images,
            "middle": self.middle,
            "scale": self._learned.scale,
            "numbers": np.array(numbers),
        }
        if self._learned.root is not None:
            arrays["root"] = self._learned.root
        if self.past is not None:
            arrays |= {f"{PAST}{name}": array for name, array in self.past.arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "AnchoredModel":
        """The model that `arrays` returned."""
        past = {
            name.removeprefix(PAST): array
            for name, array in arrays.items()
            if name.startswith(PAST)
        }
        bias_variance, concentration, within, total, image_weight, power = arrays["numbers"]
        classes = CollapsedGaussians(
            sums=arrays["sums"],
            mass=arrays["mass"],
            pseudo_images=arrays["pseudo_images"],
            within=float(within),
            total=float(total),
        )
        return cls(
            texts=arrays["texts"],
            prior=PresencePrior(float(bias_variance), float(concentration), arrays["counts"]),
            image_weight=float(image_weight),
            middle=arrays["middle"],
            power=float(power),
            learned=LearnedClasses(
                classes,
                scale=arrays["scale"],
                root=arrays.get("root"),
                past=Past.from_arrays(past) if f"{MEMORY}images" in past else None,
            ),
        )

    def probabilities(
        self,
        rows: Float[np.ndarray, "row feature"],
        view: Float[np.ndarray, "row view"] | None = None,
    ) -> Float[np.ndarray, "row class"]:
        """Class probabilities (row, class) of new images, each by itself.

        Parameters
        ----------
        rows : array of shape (row, feature)
            Embeddings by the encoder of the names.
        view : array of shape (row, view feature), optional
            Embeddings by the encoder of the view, if the batch had one.
        """
        # In float64, so that the answer for an image is the same in whatever company it is asked.
        images = directions(rows.astype(np.float64))
        seen = images if view is None else directions(view.astype(np.float64))
        scale, root = self._learned.scale, self._learned.root
        seen = (seen - self.middle) / scale
        seen = seen if root is None else solve_rows(root, seen)
        scores = images @ self.texts.T
        scores += self.prior.without_leaving_out()
        scores += self.image_weight * self.classes.log_density(seen)
        classes = first_classes(scores, min(BEST, len(self.texts)))
        kept = tempered(np.take_along_axis(scores, classes, 1), self.power)
        probabilities = np.zeros((len(rows), len(self.texts)), rows.dtype)
        np.put_along_axis(probabilities, classes, kept.astype(rows.dtype), 1)
        return probabilities


def learned_of(
    state: AnchoredState,
    labels: Int[np.ndarray, " image"],
    looks: Float32[np.ndarray, "image look"],
    drift: Drift | None,
    *,
    confidence: float,
    power: float,
) -> LearnedClasses:
    """What is remembered of a batch, in the features of its images."""
    whole = in_features(state)
    assert whole.classes is not None
    assert whole.scaling is not None
    past = past_of(whole, labels, looks, drift, confidence=confidence, power=power)
    return LearnedClasses(whole.classes, whole.scaling.scale, whole.scaling.root, past)


def in_features(state: AnchoredState) -> AnchoredState:
    """A state of a batch in a basis as one in features: what is to be remembered of it."""
    batch, basis, sums = state.batch.in_features, state.batch.basis, state.assignments.sums
    if basis is None:
        return state
    assert sums is not None
    assert state.classes is not None
    assert state.scaling is not None
    assert state.scaling.root is not None
    scaling = basis.in_features(state.scaling)
    rows = basis.rows(state.classes.sums @ state.scaling.root.T).astype(np.float32)
    products = basis.directions.T @ (state.moments.products @ basis.directions)
    return replace(
        state,
        batch=batch,
        moments=Moments.with_shots(batch, products),
        assignments=replace(state.assignments, sums=basis.rows(sums)),
        scaling=scaling,
        classes=replace(state.classes, sums=scaling.applied(rows)),
    )
