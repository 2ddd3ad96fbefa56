"""How images that come later differ from those that were labeled before."""

from dataclasses import dataclass, field
from typing import final

import numpy as np
from jaxtyping import Bool, Int

from transduce.methods.anchored.past import Looks, Past, PerClass

HAD_NONE = 0.5  # images; a class with fewer in the past is new if images get its label
HAD_FEW = 2.0  # images; fewer may have been errors
MANY_MORE = 5.0  # times as many as the past lets expect
ELSEWHERE = 1 / 16  # of trust: the means of a class are four times as far apart as chance allows


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
    remembered : int
        The number of earlier images that were labeled once more with the new ones.
    renamed : dict of int to int
        Class index to number of these that had its label when they came and would get another now.
    """

    appeared: dict[int, int]
    moved: dict[int, int]
    far: Bool[np.ndarray, " image"]
    far_before: float
    remembered: int = 0
    renamed: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        past: Past,
        labels: Int[np.ndarray, " image"],
        looks: Looks,
        trusted: PerClass | None = None,
        again: Int[np.ndarray, " remembered"] | None = None,
    ) -> "Drift":
        """Compare new images with the past, which is `trusted` so far for each class.

        `again` are the labels that the remembered images get now.
        """
        counts = np.bincount(labels, minlength=len(past.mass))
        mass = past.whole_mass()
        expected = mass * (len(labels) / max(past.images, 1.0))
        hardly = (mass + past.shot_mass < HAD_FEW) & (counts > 1) & (counts > MANY_MORE * expected)
        new = ((mass + past.shot_mass < HAD_NONE) & (counts > 0)) | hardly
        moved = np.zeros(len(counts), bool)
        if trusted is not None:
            moved = (trusted < ELSEWHERE) & (counts > 1) & ~new
        written = past.memory.written
        other = written[again != written] if again is not None else written[:0]

        def numbers(classes: Bool[np.ndarray, " class"]) -> dict[int, int]:
            return {int(k): int(counts[k]) for k in np.flatnonzero(classes)}

        return cls(
            appeared=numbers(new),
            moved=numbers(moved),
            far=past.far_from_all(looks),
            far_before=past.far,
            remembered=len(past.memory),
            renamed={int(k): int((other == k).sum()) for k in np.unique(other)},
        )

    @property
    def far_share(self) -> float:
        """The share of the new images that are far from every class."""
        return float(self.far.mean()) if len(self.far) else 0.0
