"""The order of doubt: for each image one number, the probability that its label is wrong.

No label is needed for it. A label is wrong in one of two ways:

- Alone: the image lies between classes, or looks like images with other labels. What speaks for
  it then depends on how many classes are present. If few of many are, the names of absent classes
  share what the best two leave, so the lead over the next class counts; if all are, every class is
  a rival, so the probability counts.
- With its group: a class that is not there is taken for one that is. All images of the group then
  look alike and agree with each other. Only the names can tell, and only for the group as a whole:
  how far the name of the label is ahead of the next one, in the mean over the group.

docs/trust.md has the measurements that the weights come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64, Int
from scipy.special import gammaincinv

PRIOR_WEIGHT = 0.7  # of methods that do not estimate it
VOTED = 0.9  # of what neighbors say is lost where counts and votes alone made the labels
SLOPE = 0.65  # of the logit of being right alone, for methods that give no evidence
SLOPES = 0.6, 1.0  # the same with evidence: where all classes are present, and where few are
IN_GROUPS = 0.5  # of the wrong labels are wrong with their group, where few classes are present
LEAST, MOST = 1e-4, 0.9999  # nothing is certain
FARTHEST = 6.0  # logits of the names are cut here
TO_CHECK = 0.1  # labels with at least this doubt are to be checked
TOGETHER = 0.1  # correlation of errors with the same label, beyond what the doubts know
OUT_BY = 1.0  # standard deviation of the error rate of a batch, in those that its doubts expect
LIMIT = 0.95  # how often at most so many labels are wrong as `most_wrong` says
SHIFTS = 50  # bisections: the shift is exact to the last digit of a float

Numbers = Float32[np.ndarray, " image"]
Wide = Float64[np.ndarray, " image"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each kind of evidence counts, where the logit of the probability counts 1.

    Chosen on real features, and judged on those left out: results/trust_weights.md.
    """

    neighbors: float = 8.0
    names: float = 0.1
    group: float = 2.0  # what the names say of all images with the same label
    misnamed: float = 0.4  # logit that a group is, whose two best names fit alike, if few are here


WEIGHTS = Weights()


def doubts(
    labels: Int[np.ndarray, " image"],
    top: Float32[np.ndarray, "image two"],
    evidence: Mapping[str, Float[np.ndarray, " image"]] | None = None,
    estimates: Mapping[str, float] | None = None,
    weights: Weights = WEIGHTS,
) -> Numbers:
    """Return the probability that each label of a batch is wrong (image,).

    Without evidence their mean is what the probabilities leave: 1 - the mean of `top[:, 0]`.

    Parameters
    ----------
    labels : array of int of shape (image,)
        The class of each image.
    top : array of shape (image, 2)
        The two largest class probabilities of each image.
    evidence : mapping of str to array of shape (image,), optional
        What speaks for each label: `neighbors`, `text` and `named` of `Anchored`.
    estimates : mapping of str to float, optional
        Of the batch: `prior_weight` of `Anchored`.
    weights : Weights, optional
        Of the kinds of evidence.
    """
    few = (estimates or {}).get("prior_weight", PRIOR_WEIGHT)
    expected = float(np.clip(1.0 - top[:, 0].mean(dtype=np.float64), LEAST, MOST))
    trust = _trust_alone(top, few, evidence, weights)
    if not evidence:
        return shifted(-SLOPE * trust, expected).astype(np.float32)
    slope = (1.0 - few) * SLOPES[0] + few * SLOPES[1]
    alone = shifted(-slope * trust, expected * (1.0 - IN_GROUPS * few))
    lead = np.clip(evidence["named"].astype(np.float64), -FARTHEST, None)
    # Where all classes are present, another name has images of its own.
    together = logistic(weights.misnamed + 2.0 * np.log(max(few, LEAST)) - weights.group * lead)
    either = 1.0 - (1.0 - together) * (1.0 - alone)
    return np.clip(either, LEAST, MOST).astype(np.float32)


def _trust_alone(
    top: Float32[np.ndarray, "image two"],
    few: float,
    evidence: Mapping[str, Float[np.ndarray, " image"]] | None,
    weights: Weights,
) -> Wide:
    """Return what speaks for each label, in logits (image,), whatever its group is."""
    best, second = (np.clip(top[:, at].astype(np.float64), LEAST, MOST) for at in (0, 1))
    ahead = np.maximum(np.log(best / second), 0.0)
    trust = few * ahead + (1.0 - few) * np.log(best / (1.0 - best))
    if evidence:
        nearby, names = evidence["neighbors"].astype(np.float64), _logits(evidence["text"])
        worth = (1.0 - VOTED * few) * float(nearby.mean()) ** 4
        trust += worth * weights.neighbors * (nearby - 1.0)
        trust += (1.0 - worth) * weights.names * names
    return trust


def _logits(log_probabilities: Float[np.ndarray, " image"]) -> Float64[np.ndarray, " image"]:
    """Return log(p / (1 - p)) of log p: unlike log p, it tells the likely from the likelier."""
    log_p = np.minimum(log_probabilities.astype(np.float64), -1e-9)
    return np.clip(log_p - np.log(-np.expm1(log_p)), -FARTHEST, FARTHEST)


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


def most_wrong(doubt: Float[np.ndarray, " image"], labels: Int[np.ndarray, " image"]) -> float:
    """Return how many of these labels may be wrong: hardly more, in 19 of 20 batches.

    Their expected number is the sum of the doubts, but labels are wrong in groups, and the doubts
    of a batch may all be too small. So the number is spread as a gamma distribution with the mean
    of the doubts and the variance of groups whose members have a correlation of `TOGETHER`, plus
    that of doubts which are out by their own size (`OUT_BY`).
    """
    expected = float(doubt.sum(dtype=np.float64))
    if expected <= 0.0:
        return 0.0
    _, group = np.unique(labels, return_inverse=True)
    size = np.bincount(group).astype(np.float64)
    rate = np.bincount(group, doubt.astype(np.float64)) / size
    alone = size * rate * (1.0 - rate)
    variance = float((alone * (1.0 + (size - 1.0) * TOGETHER)).sum()) + (OUT_BY * expected) ** 2
    most = float(gammaincinv(expected**2 / variance, LIMIT)) * variance / expected
    return min(float(len(doubt)), most)
