"""The order of doubt: for each image one number, the probability that its label is wrong.

No label is needed for it. What speaks for a label depends on how many classes are present:

- Few of many: the names of absent classes share what the best two leave, so its lead over the next
  class counts; and labels are wrong in groups, a class that is not there taken for one that is,
  so the images with the same label are believed or doubted together, by what the names alone say.
- All: every class is a rival, so its probability counts; and whether images that look alike have
  the same label. They say less where counts and votes made the labels (alike images agree, right
  or not), and nothing where no image has neighbors of its class.

docs/trust.md has the measurements that the weights come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64, Int

PRIOR_WEIGHT = 0.7  # of methods that do not estimate it
VOTED = 0.9  # of what neighbors say is lost where counts and votes alone made the labels
SLOPE = 0.65  # of the logit of being right in all of these together
LEAST, MOST = 1e-4, 0.9999  # nothing is certain
FARTHEST = 6.0  # logits of the names are cut here
TO_CHECK = 0.1  # labels with at least this doubt are to be checked
SHIFTS = 50  # bisections: the shift is exact to the last digit of a float

Numbers = Float32[np.ndarray, " image"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each kind of evidence counts, where the logit of the probability counts 1.

    Chosen on real features, and judged on those left out: results/trust_weights.md.
    """

    neighbors: float = 8.0
    names: float = 0.1
    group: float = 0.4  # what the names say of all images with the same label


WEIGHTS = Weights()


def doubts(
    labels: Int[np.ndarray, " image"],
    top: Float32[np.ndarray, "image two"],
    evidence: Mapping[str, Float[np.ndarray, " image"]] | None = None,
    estimates: Mapping[str, float] | None = None,
) -> Numbers:
    """Return the probability that each label of a batch is wrong (image,).

    Their mean is what the probabilities leave: 1 - the mean of `top[:, 0]`.

    Parameters
    ----------
    labels : array of int of shape (image,)
        The class of each image.
    top : array of shape (image, 2)
        The two largest class probabilities of each image.
    evidence : mapping of str to array of shape (image,), optional
        What speaks for each label: `neighbors` and `text` of `Anchored`.
    estimates : mapping of str to float, optional
        Of the batch: `prior_weight` of `Anchored`.
    """
    trust = trust_in(labels, top, evidence, estimates)
    expected = float(np.clip(1.0 - top[:, 0].mean(dtype=np.float64), LEAST, MOST))
    return shifted(-SLOPE * trust, expected).astype(np.float32)


def trust_in(
    labels: Int[np.ndarray, " image"],
    top: Float32[np.ndarray, "image two"],
    evidence: Mapping[str, Float[np.ndarray, " image"]] | None = None,
    estimates: Mapping[str, float] | None = None,
    weights: Weights = WEIGHTS,
) -> Float64[np.ndarray, " image"]:
    """Return what speaks for each label, in logits (image,); see `doubts`."""
    best, second = (np.clip(top[:, at].astype(np.float64), LEAST, MOST) for at in (0, 1))
    few = (estimates or {}).get("prior_weight", PRIOR_WEIGHT)
    ahead = np.maximum(np.log(best / second), 0.0)
    trust = few * ahead + (1.0 - few) * np.log(best / (1.0 - best))
    if evidence:
        nearby, names = evidence["neighbors"].astype(np.float64), _logits(evidence["text"])
        worth = (1.0 - VOTED * few) * float(nearby.mean()) ** 4
        trust += worth * weights.neighbors * (nearby - 1.0)
        trust += (1.0 - worth) * weights.names * names
        trust += few * weights.group * _class_means(names, labels)
    return trust


def _logits(log_probabilities: Float[np.ndarray, " image"]) -> Float64[np.ndarray, " image"]:
    """Return log(p / (1 - p)) of log p: unlike log p, it tells the likely from the likelier."""
    log_p = np.minimum(log_probabilities.astype(np.float64), -1e-9)
    return np.clip(log_p - np.log(-np.expm1(log_p)), -FARTHEST, FARTHEST)


def _class_means(
    values: Float64[np.ndarray, " image"], labels: Int[np.ndarray, " image"]
) -> Float64[np.ndarray, " image"]:
    """Return the mean of the images with the same label, and of one that is like all images."""
    _, group = np.unique(labels, return_inverse=True)
    means = (np.bincount(group, values) + values.mean()) / (np.bincount(group) + 1.0)
    return np.asarray(means[group], np.float64)


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
