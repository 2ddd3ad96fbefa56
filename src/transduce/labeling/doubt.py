"""The order of doubt: for each image one number, the probability that its label is wrong.

No label is needed for it. docs/trust.md says what it is made of and how well it does.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Float32

MARGIN_WEIGHT = 0.3

Numbers = Float32[np.ndarray, " image"]


def doubts(
    score: Numbers, evidence: Mapping[str, Float[np.ndarray, " image"]] | None = None
) -> Numbers:
    """Return the probability that each label of a batch is wrong (image,).

    Parameters
    ----------
    score : array of shape (image,)
        The probability of each label.
    evidence : mapping of str to array of shape (image,), optional
        What speaks for each label, as `Prediction.evidence` of `Anchored`.
    """
    doubt = np.clip(1.0 - score, 0.0, 1.0).astype(np.float32)
    if not evidence:
        return doubt
    # The scores say how many labels are wrong; names and margin say better which.
    trust = MARGIN_WEIGHT * evidence["margin"] + evidence["text"]
    ordered = np.empty_like(doubt)
    ordered[np.argsort(trust, kind="stable")] = np.sort(doubt)[::-1]
    return ordered
