"""The labels of a run, column by column, with the reasons to look at some of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int

from transduce.labeling.problem import Problem, Solution
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.trust.doubt import TO_CHECK

# The reasons to look at an image; `LabelTable.reason` is these phrases, joined by "; ".
CLOSE_CALL = "close call"
CHANGED = "changed from a sure zero-shot label"
FAR = "far from every class"
DUPLICATE = "a duplicate has another label"
TINY = "one of very few in its class"
NEIGHBORS = "images like it have other labels"
DOUBTFUL = "doubtful"
REASONS = (CLOSE_CALL, NEIGHBORS, CHANGED, FAR, DUPLICATE, TINY, DOUBTFUL)
BETWEEN_REASONS = "; "

CLOSE_MARGIN = 0.4
SURE_ZERO_SHOT = 0.8
FAR_DEVIATIONS = 2.25  # robust standard deviations beyond the median
FEWEST_FOR_FAR = 20  # images; with fewer, what is usual cannot be estimated
TINY_CLASS = 2
FEW_ALIKE = 0.5  # of the images around it have the same label
NORMAL = 1.4826  # median absolute deviation to standard deviation
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
    file_name = tuple(store.keys())
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
            for name, path in zip(file_name, store.column("image_path"), strict=True)
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


def strangeness(
    distance: Float32[np.ndarray, " image"], undecided: Float32[np.ndarray, " image"]
) -> Float32[np.ndarray, " image"]:
    """Return how much each image looks like one of no class, compared with the others of the run.

    The standardized distance from the nearest class plus the standardized entropy of the names.
    """
    parts = (distance.astype(np.float64), undecided.astype(np.float64))
    total = sum((part - part.mean()) / (part.std() or 1.0) for part in parts)
    return np.asarray(total, np.float32)


def far_away(strange: Float32[np.ndarray, " image"]) -> Bool[np.ndarray, " image"]:
    """Flag images that are unusually strange, compared with the others of the run."""
    median = np.median(strange)
    deviation = NORMAL * np.median(np.abs(strange - median))
    if len(strange) < FEWEST_FOR_FAR or deviation == 0.0:
        return np.zeros(len(strange), bool)
    return strange > median + FAR_DEVIATIONS * deviation


def conflicting(
    file_name: Sequence[str], duplicate_of: Sequence[str], label: Int[np.ndarray, " image"]
) -> Bool[np.ndarray, " image"]:
    """Flag images with the same content as another that has another label."""
    first = {name: row for row, name in enumerate(file_name)} if any(duplicate_of) else {}
    groups: dict[int, list[int]] = {}
    for row, name in enumerate(duplicate_of):
        if name in first:
            groups.setdefault(first[name], [first[name]]).append(row)
    conflict = np.zeros(len(label), bool)
    for rows in groups.values():
        if len(np.unique(label[rows])) > 1:
            conflict[rows] = True
    return conflict


def in_tiny_classes(label: Int[np.ndarray, " image"], n_classes: int) -> Bool[np.ndarray, " image"]:
    """Flag images whose label at most TINY_CLASS images have."""
    counts = np.bincount(label[label != UNKNOWN], minlength=n_classes)
    if len(label) < FEWEST_FOR_FAR:
        return np.zeros(len(label), bool)
    return (label != UNKNOWN) & (counts[label] <= TINY_CLASS)


def reasons_of(
    *,
    doubt: Float32[np.ndarray, " image"],
    margin: Float32[np.ndarray, " image"],
    neighbors: Float32[np.ndarray, " image"],
    changed: Bool[np.ndarray, " image"],
    zero_shot_score: Float32[np.ndarray, " image"],
    far: Bool[np.ndarray, " image"],
    conflict: Bool[np.ndarray, " image"],
    tiny: Bool[np.ndarray, " image"],
    settled: Bool[np.ndarray, " image"],
) -> tuple[str, ...]:
    """Return why each image is to be checked; "" for none, and for `settled` images.

    An image is to be checked if its label is doubtful, far from every class, or not that of a
    duplicate; the other reasons say more of such images.
    """
    check = (doubt >= TO_CHECK) | far | conflict
    flags = {
        CLOSE_CALL: margin < CLOSE_MARGIN,
        NEIGHBORS: neighbors < FEW_ALIKE,
        CHANGED: changed & (zero_shot_score >= SURE_ZERO_SHOT),
        FAR: far,
        DUPLICATE: conflict,
        TINY: tiny,
    }
    flags[DOUBTFUL] = ~np.any(list(flags.values()), axis=0)
    reasons = [""] * len(margin)
    for reason, flagged in flags.items():
        for row in np.flatnonzero(flagged & check & ~settled):
            reasons[row] += (BETWEEN_REASONS if reasons[row] else "") + reason
    return tuple(reasons)
