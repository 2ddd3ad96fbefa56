"""How many of the listed classes a batch holds, and how much of it zero-shot is unsure of.

The proportions of the classes are fitted by EM with the encoder's own probabilities held fixed
(Saerens, Latinne and Decaestecker, 2002); a class is present if its share comes to an image.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from transduce.simplex.probabilities import softmax

OWN_TEMPERATURE = 100.0  # the scale that CLIP-like encoders are trained to; their own confidence
MOST_ROWS = 4096  # enough to see the proportions; taken evenly from the batch
ITERATIONS = 50
SMALLEST = 1e-37  # log(0) is kept out


@dataclass(frozen=True, slots=True)
class Presence:
    """`classes` are the numbers of those present; `doubt` is the expected share of zero-shot's
    labels that are wrong, by its own confidence."""

    classes: Int[np.ndarray, " present"]
    doubt: float


def own_scores(
    zero_shot: Float[np.ndarray, "image class"], temperature: float
) -> Float[np.ndarray, "image class"]:
    """OWN_TEMPERATURE x cosine, up to a constant per row, from softmax(temperature x cosine)."""
    logs: Float[np.ndarray, "image class"]
    logs = np.log(np.maximum(zero_shot, SMALLEST), dtype=np.float64)
    return logs * (OWN_TEMPERATURE / temperature)


def estimate_presence(zero_shot: Float[np.ndarray, "image class"], temperature: float) -> Presence:
    rows = np.unique(np.linspace(0, len(zero_shot) - 1, MOST_ROWS).round().astype(np.int64))
    own = softmax(own_scores(zero_shot[rows], temperature))
    shares = np.full(own.shape[1], 1.0 / own.shape[1])
    for _ in range(ITERATIONS):
        joint = own * shares
        shares = (joint / joint.sum(1, keepdims=True)).mean(0)
    present = np.flatnonzero(shares * len(rows) >= 1.0)
    if not present.size:  # fewer images than classes, and every one a mystery
        present = np.array([shares.argmax()])
    return Presence(present, float(1.0 - own.max(1).mean()))
