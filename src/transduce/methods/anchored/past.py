"""What labeled images leave behind in `Anchored`: sums, which images that come later join.

Nothing of a `Past` depends on the order in which its images came, but for rounding: counts, sums
and products add up, the probability that a class is absent multiplies, and shares are means by
the number of images. So the pasts of several batches add up to that of all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

PerClass = Float64[np.ndarray, " class"]
Looks = Float32[np.ndarray, "image look"]  # distance from the nearest name, and doubt about it

HAD_NONE = 0.5  # images; a class with fewer in the past is new if images get its label
HAD_FEW = 2.0  # images; fewer may have been errors
MANY_MORE = 5.0  # times as many as the past lets expect
ELSEWHERE = 1 / 16  # of trust: the means of a class are four times as far apart as chance allows
FEWEST_COMPARED = 1.5  # images of a class, to say whether they lie where the past was
EMPTY = 1e-9
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
    """The images that were labeled so far, as sums.

    `rows`, `every_mass`, `every_sums` and `products` are of images and shots, all others of the
    images alone; `every_sums` and `products` are about `middle`.
    """

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
        share = other.count / max(self.count + other.count, 1e-12)

        def mean(name: str) -> float:
            return (1.0 - share) * float(getattr(self, name)) + share * float(getattr(other, name))

        middle = (1.0 - share) * self.middle + share * other.middle
        one, two = self.about(middle), other.about(middle)
        weights = [past.shot_weight for past in (self, other) if not np.isnan(past.shot_weight)]
        return Past(
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

    def about(self, middle: Float64[np.ndarray, " feature"]) -> "Past":
        """The same with sums and products about another middle."""
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
        compared: Float64[np.ndarray, "image feature"],
        labels: Int[np.ndarray, " image"],
        corrections: Int[np.ndarray, " image"],
    ) -> "Past":
        """The same after some images went from the class they were labeled with to another.

        A correction below 0 is none of the classes: the image leaves the past. `compared` are
        the images as they were compared, unit vectors.
        """
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
                mass > HAD_NONE,
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
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Past":
        """The past that `arrays` returned."""
        values: dict[str, Any] = {
            field.name: float(arrays[field.name].item())
            if field.type is float
            else arrays[field.name]
            for field in fields(cls)
        }
        return cls(**values)

    def far_from_all(self, looks: Looks) -> Bool[np.ndarray, " image"]:
        """Flag images farther from every class name than is usual in this past."""
        if self.count < FEWEST:
            return np.zeros(len(looks), bool)
        mean = self.look_sums / self.count
        spread = self.look_products / self.count - np.outer(mean, mean)
        by = np.sqrt(np.maximum(np.diag(spread), 1e-12))
        together = float(np.sqrt(max((spread / np.outer(by, by)).sum(), 1e-12)))
        flagged: Bool[np.ndarray, " image"] = ((looks - mean) / by).sum(1) > FAR * together
        return flagged


@final
@dataclass(frozen=True)
class Drift:
    """How new images differ from those that were labeled before.

    Parameters
    ----------
    appeared : dict of int to int
        Class index to number of new images, for classes that hardly any image had before.
    moved : dict of int to int
        The same for classes whose images lie elsewhere than those that had the label before.
    far : array of bool of shape (image,)
        Which of the new images are farther from every class name than was usual before.
    far_before : float
        The share of such images before.
    """

    appeared: dict[int, int]
    moved: dict[int, int]
    far: Bool[np.ndarray, " image"]
    far_before: float

    @classmethod
    def of(
        cls,
        past: Past,
        labels: Int[np.ndarray, " image"],
        looks: Looks,
        trusted: PerClass | None = None,
    ) -> "Drift":
        """Compare new images with the past, which is `trusted` so far for each class."""
        counts = np.bincount(labels, minlength=len(past.mass))
        expected = past.mass * (len(labels) / max(past.count, 1.0))
        hardly = (past.every_mass < HAD_FEW) & (counts > 1) & (counts > MANY_MORE * expected)
        new = ((past.every_mass < HAD_NONE) & (counts > 0)) | hardly
        moved = np.zeros(len(counts), bool)
        if trusted is not None:
            moved = (trusted < ELSEWHERE) & (counts > 1) & ~new

        def numbers(classes: Bool[np.ndarray, " class"]) -> dict[int, int]:
            return {int(k): int(counts[k]) for k in np.flatnonzero(classes)}

        return cls(numbers(new), numbers(moved), past.far_from_all(looks), past.far)

    @property
    def far_share(self) -> float:
        """The share of the new images that are far from every class."""
        return float(self.far.mean()) if len(self.far) else 0.0
