"""The labels of a run, column by column."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int

from transduce.labeling.problem import Problem, Solution
from transduce.labeling.review_reasons import (
    BETWEEN_REASONS,
    conflicting,
    far_away,
    in_tiny_classes,
    reasons_of,
    strangeness,
)
from transduce.labeling.settings import UNKNOWN

DOUBT_OF_UNKNOWN = 0.5

Texts = tuple[str, ...]
Numbers = Float32[np.ndarray, " image"]
Flags = Bool[np.ndarray, " image"]
ClassIndices = Int[np.ndarray, " image"]  # UNKNOWN where an image is none of the classes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelTable:
    """One entry per image in each column, in the order of the feature store."""

    file_name: Texts
    image_path: Texts  # where the image is; "" when only its features are known
    label: ClassIndices
    score: Numbers  # the probability of the label; of the likeliest class if the label is unknown
    margin: Numbers  # the likeliest class's probability minus the next one's
    entropy: Numbers  # of the probabilities over its maximum log K: 0 sure, 1 no idea
    doubt: Numbers  # the estimated probability that the label is wrong
    zero_shot_label: ClassIndices
    zero_shot_score: Numbers
    distance: Numbers  # from the nearest class, 1 - its cosine; compare within a run only
    strangeness: Numbers  # how much it looks like an image of no class, in standard deviations
    changed: Flags  # the label is not zero-shot's
    needs_review: Flags
    reason: Texts  # why, in words: REASONS joined by BETWEEN_REASONS; "" if there is none
    duplicate_of: Texts  # the first file with the same content; "" if this is the first
    corrected: Flags  # labeled by hand, as a correction
    truth: ClassIndices | None = None  # UNKNOWN where the truth file says nothing of it

    def __len__(self) -> int:
        return len(self.file_name)

    def reasons(self, row: int) -> tuple[str, ...]:
        """Return the reasons to look at the image of a row; empty if there is none."""
        return tuple(self.reason[row].split(BETWEEN_REASONS)) if self.reason[row] else ()


def label_table(problem: Problem, solution: Solution) -> LabelTable:
    """Return the labels of a solution, with the reasons to look at them."""
    store = problem.store
    metadata = store.metadata(["file_name", "image_path"])
    file_name = tuple(metadata["file_name"].to_pylist())
    duplicate_of = tuple(name or "" for name in store.duplicates_of())
    corrected = np.zeros(len(store), bool)
    corrected[list(problem.fixed)] = True
    strange = strangeness(solution.distance, solution.names_entropy)
    far = far_away(strange)
    if problem.past is not None:  # what is usual is known of the images before
        far = solution.strange
    unknown = solution.top[:, 0] < problem.settings.min_score
    if problem.settings.allow_unknown:
        unknown |= far
    label = np.where(unknown & ~corrected, UNKNOWN, solution.label)
    # That an image is of no class is a guess of its own, which nothing speaks for but distance.
    doubt = np.where(unknown & ~corrected, np.float32(DOUBT_OF_UNKNOWN), solution.doubt)
    changed = label != solution.zero_shot_label
    margin = solution.top[:, 0] - solution.top[:, 1]
    reason = reasons_of(
        doubt=doubt,
        margin=margin,
        neighbors=solution.neighbors,
        changed=changed & (label != UNKNOWN),
        zero_shot_score=solution.zero_shot_score,
        far=far,
        conflict=conflicting(file_name, duplicate_of, label),
        tiny=in_tiny_classes(label, problem.n_classes),
        settled=corrected,
    )
    return LabelTable(
        file_name=file_name,
        image_path=tuple(
            problem.image_paths.get(name, path or "")
            for name, path in zip(file_name, metadata["image_path"].to_pylist(), strict=True)
        ),
        label=label,
        score=np.ascontiguousarray(solution.top[:, 0]),
        margin=margin,
        entropy=solution.entropy,
        doubt=doubt,
        zero_shot_label=solution.zero_shot_label,
        zero_shot_score=solution.zero_shot_score,
        distance=solution.distance,
        strangeness=strange,
        changed=changed,
        needs_review=np.array([bool(words) for words in reason]),
        reason=reason,
        duplicate_of=duplicate_of,
        corrected=corrected,
        truth=problem.truth,
    )
