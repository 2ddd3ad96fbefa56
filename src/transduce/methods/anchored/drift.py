"""How images that come later differ from those that were labeled before."""

from dataclasses import dataclass, field
from typing import final

import numpy as np
from jaxtyping import Bool, Int
from scipy.special import betainc

from transduce.methods.anchored.past import Looks, Past, PerClass

MANY_MORE = 3.0  # times as common as before
WRONGLY_SAID = 0.2  # share of the classes that are said to appear, at most, if labels were right
ELSEWHERE = 1 / 16  # of trust: the means of a class are four times as far apart as chance allows


@final
@dataclass(frozen=True)
class Drift:
    """How new images differ from those that were labeled before.

    Parameters
    ----------
    appeared : dict of int to int
        Class index to number of new images, for classes that are far more common than before.
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
        new = _more_common(counts, past.whole_mass() + past.shot_mass, past.images)
        moved = np.zeros(len(counts), bool)
        if trusted is not None:
            moved = (trusted < ELSEWHERE) & (counts > 1)
        written = past.memory.written
        other = written[again != written] if again is not None else written[:0]

        def numbers(classes: Bool[np.ndarray, " class"]) -> dict[int, int]:
            return {int(k): int(counts[k]) for k in np.flatnonzero(classes)}

        return cls(
            appeared=numbers(new & ~moved),
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


def _more_common(
    counts: Int[np.ndarray, " class"], before: PerClass, n_before: float
) -> Bool[np.ndarray, " class"]:
    """Flag classes that are far more common among new images than before, beyond chance.

    If nothing changed, each image of a class is a new one with the same probability; so the
    probability that as many are is that of a binomial tail. Of the classes that pass, at most a
    given share is expected to be wrong (Benjamini and Hochberg, 1995).
    """
    here = np.flatnonzero(counts)
    n_new = float(counts.sum())
    tail = betainc(counts[here], before[here] + 1.0, n_new / max(n_new + n_before, 1.0))
    order = np.argsort(tail, kind="stable")
    passed = tail[order] <= WRONGLY_SAID * np.arange(1, len(here) + 1) / max(len(here), 1)
    new = np.zeros(len(counts), bool)
    new[here[order[: np.flatnonzero(passed).max(initial=-1) + 1]]] = True
    found: Bool[np.ndarray, " class"] = new & (
        counts * n_before > MANY_MORE * n_new * (before + 0.5)
    )
    return found
