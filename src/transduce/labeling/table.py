"""The labels of a batch, column by column."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int

UNKNOWN = -1  # the class number of an image that is none of the classes
UNKNOWN_LABEL = "unknown"

# The reasons to look at an image; `reason` is these phrases, joined by "; ".
CLOSE_CALL = "close call"
CHANGED = "changed from a sure zero-shot label"
FAR = "far from every class"
DUPLICATE = "a duplicate has another label"
TINY = "one of very few in its class"
REASONS = (CLOSE_CALL, CHANGED, FAR, DUPLICATE, TINY)
BETWEEN_REASONS = "; "

Texts = tuple[str, ...]
Numbers = Float32[np.ndarray, " image"]
Flags = Bool[np.ndarray, " image"]
Places = Int[np.ndarray, " image"]  # numbers of classes; UNKNOWN where it is none of them


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTable:
    """One entry per image in each column, in the order of the feature store."""

    file_name: Texts
    image_path: Texts  # where the picture is; "" when only its features are known
    label: Places
    score: Numbers  # the probability of the label; of the likeliest class if the label is unknown
    margin: Numbers  # the likeliest class's probability minus the next one's
    entropy: Numbers  # of the probabilities over its maximum log K: 0 sure, 1 no idea
    zero_shot_label: Places
    zero_shot_score: Numbers
    distance: Numbers  # from the nearest class, 1 - its cosine; compare within a run only
    changed: Flags  # the label is not zero-shot's
    needs_review: Flags
    reason: Texts  # why, in words: REASONS joined by BETWEEN_REASONS; "" if there is none
    duplicate_of: Texts  # the first file with the same content; "" if this is the first
    corrected: Flags  # labeled by hand, as a correction
    truth: Places | None = None  # UNKNOWN where the truth file says nothing of it

    def __len__(self) -> int:
        return len(self.file_name)

    def reasons(self, row: int) -> tuple[str, ...]:
        return tuple(self.reason[row].split(BETWEEN_REASONS)) if self.reason[row] else ()
