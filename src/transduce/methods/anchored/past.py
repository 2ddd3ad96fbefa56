"""What labeled images leave behind in `Anchored`: some of them as they are, and sums of the others.

Given the labels, nothing of a `Past` depends on the order in which its images came, but for
rounding: which images are remembered depends on the images alone; counts, sums and products add up,
the probability that a class is absent multiplies, and shares are means by the number of images. So
the pasts of several batches add up to that of all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from transduce.methods.anchored.batch import Rows
from transduce.methods.anchored.memory import Memory, first_by_priority, priorities

PerClass = Float64[np.ndarray, " class"]
Looks = Float32[np.ndarray, "image look"]  # distance from the nearest name, and doubt about it

MEMORY = "memory."  # before the names of its arrays
FEWEST_COMPARED = 1.5  # images of a class, to say whether they lie where the past was
EMPTY = 1e-9
HALF_AN_IMAGE = 0.5
FAR = 3.0  # standard deviations of distance and doubt together
FEWEST = 20  # images of the past; with fewer, what is usual cannot be said


@final
@dataclass(frozen=True)
class ShotFit:
    """What the shots say of the image evidence, each of them left out."""

    weight: float  # at which it names them best
    right: float  # share of them that it then names rightly


@dataclass(frozen=True, kw_only=True)
class Past:
    """The images that were labeled so far: those of the memory, and sums of all others.

    Sums are of the images that are not in the memory; `look_sums`, `look_products` and `far` are of
    all images. `rows`, `every_mass`, `every_sums` and `products` are of images and shots, all
    others of images alone; `every_sums` and `products` are about `middle`.
    """

    memory: Memory
    count: float
    mass: PerClass
    present: PerClass  # probability that the class has any image
    rows: float
    every_mass: PerClass
    every_sums: Float64[np.ndarray, "class feature"]
    products: Float64[np.ndarray, "feature feature"]
    middle: Float64[np.ndarray, " feature"]
    shot_mass: PerClass
    agreement: float  # share of the images
    text_confidence: float
    within_share: float  # of the total variance
    confidence: float
    log_power: float
    shot_weight: float  # NaN without two shots of a class
    look_sums: Float64[np.ndarray, " look"]
    look_products: Float64[np.ndarray, "look look"]
    far: float  # share of the images that were far from every class when they came

    def __add__(self, other: "Past") -> "Past":
        share = other.images / max(self.images + other.images, 1e-12)

        def mean(name: str) -> float:
            return (1.0 - share) * float(getattr(self, name)) + share * float(getattr(other, name))

        middle = (1.0 - share) * self.middle + share * other.middle
        one, two = self.about(middle), other.about(middle)
        memory = self.memory.joined(other.memory)
        kept = first_by_priority(priorities(memory.images))
        weights = [past.shot_weight for past in (self, other) if not np.isnan(past.shot_weight)]
        both = Past(
            memory=memory.take(kept),
            count=self.count + other.count,
            mass=self.mass + other.mass,
            present=1.0 - (1.0 - self.present) * (1.0 - other.present),
            rows=self.rows + other.rows,
            every_mass=self.every_mass + other.every_mass,
            every_sums=one.every_sums + two.every_sums,
            products=one.products + two.products,
            middle=middle,
            shot_mass=self.shot_mass + other.shot_mass,
            agreement=mean("agreement"),
            text_confidence=mean("text_confidence"),
            within_share=mean("within_share"),
            confidence=mean("confidence"),
            log_power=mean("log_power"),
            shot_weight=float(np.mean(weights)) if weights else np.nan,
            look_sums=self.look_sums + other.look_sums,
            look_products=self.look_products + other.look_products,
            far=mean("far"),
        )
        gone = memory.take(np.setdiff1d(np.arange(len(memory)), kept))
        return both.with_labeled(gone.compared, gone.labels)

    @property
    def images(self) -> float:
        """The number of images, those of the memory with them."""
        return self.count + len(self.memory)

    @property
    def sums(self) -> "Past | None":
        """The past itself if images are in its sums; None if all of them are in the memory."""
        return self if self.rows else None

    def whole_mass(self) -> PerClass:
        """How many images each class has, those of the memory with them."""
        return self.mass + np.bincount(self.memory.labels, minlength=len(self.mass))

    def with_labeled(self, compared: Rows, labels: Int[np.ndarray, " image"]) -> "Past":
        """The past with more images in the sums, whose labels stay."""
        if not len(labels):
            return self
        rows, n = compared - self.middle, float(len(labels))
        counts, sums = np.bincount(labels, minlength=len(self.mass)), self.every_sums.copy()
        np.add.at(sums, labels, rows)
        return replace(
            self,
            count=self.count + n,
            rows=self.rows + n,
            mass=self.mass + counts,
            present=np.where(counts, 1.0, self.present),
            every_mass=self.every_mass + counts,
            every_sums=sums,
            products=self.products + rows.T @ rows,
        )

    def about(self, middle: Float64[np.ndarray, " feature"]) -> "Past":
        """The past with sums and products about another middle."""
        moved = middle - self.middle
        cross = np.outer(self.every_sums.sum(0), moved)
        return replace(
            self,
            every_sums=self.every_sums - np.outer(self.every_mass, moved),
            products=self.products - cross - cross.T + self.rows * np.outer(moved, moved),
            middle=middle,
        )

    def corrected(
        self,
        compared: Rows,
        labels: Int[np.ndarray, " image"],
        corrections: Int[np.ndarray, " image"],
    ) -> "Past":
        """The past after some images went from the class they were labeled with to another.

        Their labels stay: those that were remembered go into the sums. A correction below 0 is none
        of the classes: the image leaves the past. `compared` are the images as they were compared,
        unit vectors.
        """
        found = self.memory.find(compared)
        remembered, stay = found >= 0, np.setdiff1d(np.arange(len(self.memory)), found)
        known = remembered & (corrections >= 0)
        past = replace(self, memory=self.memory.take(stay))
        past = past.with_labeled(compared[known], corrections[known])
        return past._moved(compared[~remembered], labels[~remembered], corrections[~remembered])

    def _moved(
        self,
        compared: Rows,
        labels: Int[np.ndarray, " image"],
        corrections: Int[np.ndarray, " image"],
    ) -> "Past":
        """The past after some images of the sums went to another class, or left."""
        mass, every_mass = self.mass.copy(), self.every_mass.copy()
        sums, products, gone = self.every_sums.copy(), self.products.copy(), 0
        for row, label, correction in zip(compared - self.middle, labels, corrections, strict=True):
            if label == correction:
                continue
            if label >= 0:
                share = min(1.0, mass[label])  # less than an image may have been counted
                mass[label] -= share
                every_mass[label] -= share
                sums[label] -= share * row
            if correction >= 0:
                mass[correction] += 1.0
                every_mass[correction] += 1.0
                sums[correction] += row
            else:
                products -= np.outer(row, row)
                gone += 1
        return replace(
            self,
            count=self.count - gone,
            rows=self.rows - gone,
            mass=mass,
            present=np.where(
                mass > HALF_AN_IMAGE,
                np.maximum(self.present, np.minimum(mass, 1.0)),
                np.minimum(self.present, mass),
            ),
            every_mass=every_mass,
            every_sums=sums,
            products=products,
        )

    def trusted(
        self,
        mass: PerClass,
        sums: Float64[np.ndarray, "class feature"],
        transform: Float32[np.ndarray, "feature feature"],
        within: float,
    ) -> PerClass:
        """How far the past of each class is to be believed, from 0 to 1.

        If the images that the text gives a class now lie elsewhere than those it had, more than
        chance allows, then it may have held another class's images: they would keep its own out
        for ever. `within` is the variance within classes of transformed rows.
        """
        both = np.flatnonzero((mass > FEWEST_COMPARED) & (self.every_mass > EMPTY))
        n, before = mass[both], self.every_mass[both]
        apart = sums[both] / n[:, np.newaxis] - self.every_sums[both] / before[:, np.newaxis]
        apart = apart @ transform.T
        chance = within * (1.0 / n + 1.0 / before)
        ratio = np.einsum("ij,ij->i", apart, apart) / np.maximum(chance, EMPTY)
        trusted = np.ones(len(mass))
        trusted[both] = 1.0 / np.maximum(ratio, 1.0) ** 2
        return trusted

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields by name, to be kept in a file."""
        found = {name: np.asarray(getattr(self, name)) for name in _names()}
        return found | {f"{MEMORY}{name}": array for name, array in self.memory.arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Past":
        """The past that `arrays` returned."""
        values: dict[str, Any] = {
            field.name: float(arrays[field.name].item())
            if field.type is float
            else arrays[field.name]
            for field in fields(cls)
            if field.name in _names()
        }
        remembered = {
            name.removeprefix(MEMORY): array
            for name, array in arrays.items()
            if name.startswith(MEMORY)
        }
        return cls(memory=Memory.from_arrays(remembered), **values)

    def far_from_all(self, looks: Looks) -> Bool[np.ndarray, " image"]:
        """Flag images farther from every class name than is usual in this past."""
        if self.images < FEWEST:
            return np.zeros(len(looks), bool)
        mean = self.look_sums / self.images
        spread = self.look_products / self.images - np.outer(mean, mean)
        by = np.sqrt(np.maximum(np.diag(spread), 1e-12))
        together = float(np.sqrt(max((spread / np.outer(by, by)).sum(), 1e-12)))
        flagged: Bool[np.ndarray, " image"] = ((looks - mean) / by).sum(1) > FAR * together
        return flagged


def _names() -> list[str]:
    """The fields that are numbers or arrays."""
    return [field.name for field in fields(Past) if field.name != "memory"]
