"""The order of doubt: for each image one number, the probability that its label is wrong.

No label is needed for it. Five things speak for a label: how far it is ahead of the next one, its
probability, whether images that look alike have the same label, whether looks alone would give it,
and what the names alone say. Neighbors and looks say nothing where counts and votes made the
labels (few of the classes are present: alike images agree, right or not), and where no
image has neighbors of its class (a few images of each of many classes); there the names count
instead. docs/trust.md has the measurements that the weights come from.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Float32, Float64

AHEAD, LIKELY = 0.7, 0.3  # weights of the logarithms of p / p of the next class, and p / (1 - p)
NEIGHBORS, LOOKS, NAMES = 8.0, 0.3, 0.2
SLOPE = 0.7  # of the logit of being right in all of these together
LEAST, MOST = 1e-4, 0.9999  # nothing is certain
FARTHEST = 12.0  # logarithms are cut here
TO_CHECK = 0.1  # labels with at least this doubt are to be checked
SHIFTS = 50  # bisections: the shift is exact to the last digit of a float

Numbers = Float32[np.ndarray, " image"]


def doubts(
    top: Float32[np.ndarray, "image two"],
    evidence: Mapping[str, Float[np.ndarray, " image"]] | None = None,
    estimates: Mapping[str, float] | None = None,
) -> Numbers:
    """Return the probability that each label of a batch is wrong (image,).

    Their mean is what the probabilities leave: 1 - the mean of `top[:, 0]`.

    Parameters
    ----------
    top : array of shape (image, 2)
        The two largest class probabilities of each image.
    evidence : mapping of str to array of shape (image,), optional
        What speaks for each label: `neighbors`, `image` and `text` of `Anchored`.
    estimates : mapping of str to float, optional
        Of the batch: `prior_weight` of `Anchored`.
    """
    best, second = (np.clip(top[:, at].astype(np.float64), LEAST, MOST) for at in (0, 1))
    ahead = np.maximum(np.log(best / second), 0.0)
    trust = AHEAD * ahead + LIKELY * np.log(best / (1.0 - best))
    if evidence and estimates:
        nearby = evidence["neighbors"].astype(np.float64)
        worth = (1.0 - estimates["prior_weight"]) * float(nearby.mean()) ** 4
        looks, names = (np.maximum(evidence[part], -FARTHEST) for part in ("image", "text"))
        trust += worth * (NEIGHBORS * (nearby - 1.0) + LOOKS * looks)
        trust += (1.0 - worth) * NAMES * names
    expected = float(np.clip(1.0 - best.mean(), LEAST, MOST))
    return shifted(-SLOPE * trust, expected).astype(np.float32)


def shifted(logits: Float[np.ndarray, " image"], mean: float) -> Float64[np.ndarray, " image"]:
    """Return the probabilities of these logits, all shifted alike so that their mean is `mean`."""
    low, high = -60.0 - float(logits.max()), 60.0 - float(logits.min())
    for _ in range(SHIFTS):
        middle = 0.5 * (low + high)
        if logistic(logits + middle).mean() > mean:
            high = middle
        else:
            low = middle
    return np.clip(logistic(logits + low), LEAST, MOST)


def logistic(logits: Float[np.ndarray, " image"]) -> Float64[np.ndarray, " image"]:
    """Return 1 / (1 + exp(-logits))."""
    return 1.0 / (1.0 + np.exp(np.clip(-logits, -80.0, 80.0)))
