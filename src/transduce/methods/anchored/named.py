"""What the names say of all images with the same label together.

Names are weak evidence for one image, but what they say of the mean of a group hardly depends on
chance: if another name fits the group almost as well, the whole group may be named wrongly.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Float64, Int

from transduce.simplex.probabilities import blocks
from transduce.simplex.threads import over_slices

Rows = Float32[np.ndarray, "row feature"]


@final
@dataclass(frozen=True)
class LabelSums:
    """Sums over the images of each label that occurs."""

    classes: Int[np.ndarray, " label"]  # in their order
    counts: Int[np.ndarray, " label"]
    sums: Float64[np.ndarray, "label feature"]

    @classmethod
    def of(cls, labels: Int[np.ndarray, " row"], rows: Rows) -> "LabelSums":
        """The sums of these rows."""
        classes, group = np.unique(labels, return_inverse=True)
        n, shape = len(labels), (len(classes), len(labels))
        own = sp.csr_array((np.ones(n, np.float32), (group, np.arange(n))), shape=shape)
        return cls(classes, np.bincount(group), np.asarray(own @ rows, np.float64))

    def moved(self, by: Float32[np.ndarray, " feature"]) -> "LabelSums":
        """The sums of rows that are all `by` away from these."""
        return LabelSums(self.classes, self.counts, self.sums + np.outer(self.counts, by))

    def plus(self, other: "LabelSums") -> "LabelSums":
        """The sums over the images of both."""
        classes = np.union1d(self.classes, other.classes)
        counts = np.zeros(len(classes), np.int64)
        sums = np.zeros((len(classes), self.sums.shape[1]))
        for part in (self, other):
            at = np.searchsorted(classes, part.classes)
            counts[at] += part.counts
            sums[at] += part.sums
        return LabelSums(classes, counts, sums)

    def leads(self, texts: Rows) -> Float32[np.ndarray, " class"]:
        """How far the mean score of each label's own name is ahead of the next (class,).

        Infinite for classes without images, and where there is only one name.
        """
        leads = np.full(len(texts), np.inf, np.float32)
        if len(texts) == 1:
            return leads
        means = (self.sums / self.counts[:, np.newaxis]).astype(np.float32)

        def fill(part: slice) -> None:
            own, scores = self.classes[part], means[part] @ texts.T
            at = np.arange(len(own)), own
            named = scores[at]
            scores[at] = -np.inf
            leads[own] = named - scores.max(1)

        over_slices(fill, list(blocks(len(means), len(texts))))
        return leads
