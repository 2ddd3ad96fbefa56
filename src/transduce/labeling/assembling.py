"""From a solution to the table of labels and the summary of the run."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Int

import transduce
from transduce.encoders.class_names import ClassNames
from transduce.errors import InvalidFile
from transduce.labeling.evaluation import evaluate
from transduce.labeling.files import places_of, read_labeled
from transduce.labeling.review_reasons import conflicting, far_away, in_tiny_classes, reasons_of
from transduce.labeling.settings import LabelSettings
from transduce.labeling.solving import Problem, Solution
from transduce.labeling.summary import ClassSummary, Summary
from transduce.labeling.table import UNKNOWN, LabelTable

COLLAPSED = 0.6  # the answer uses less than this share of the classes that zero-shot saw
TOO_MANY_CHANGES = 1.5  # times as many as zero-shot itself expects to be wrong on


def table_of(problem: Problem, solution: Solution, classes: ClassNames) -> LabelTable:
    settings, store = problem.settings, problem.store
    metadata = store.metadata(["file_name", "image_path"])
    file_name = tuple(metadata["file_name"].to_pylist())
    duplicate_of = tuple(name or "" for name in store.duplicates_of())
    corrected = np.zeros(len(store), bool)
    corrected[list(problem.fixed)] = True
    far = far_away(solution.distance)
    label = np.where(
        _becomes_unknown(settings, solution, far) & ~corrected, UNKNOWN, solution.label
    )
    changed = label != solution.zero_shot_label
    margin = solution.top[:, 0] - solution.top[:, 1]
    reason = reasons_of(
        margin=margin,
        changed=changed & (label != UNKNOWN),
        zero_shot_score=solution.zero_shot_score,
        far=far,
        conflict=conflicting(file_name, duplicate_of, label),
        tiny=in_tiny_classes(label, problem.n_classes),
        settled=corrected,
    )
    return LabelTable(
        file_name=file_name,
        image_path=tuple(path or "" for path in metadata["image_path"].to_pylist()),
        label=label,
        score=np.ascontiguousarray(solution.top[:, 0]),
        margin=margin,
        entropy=solution.entropy,
        zero_shot_label=solution.zero_shot_label,
        zero_shot_score=solution.zero_shot_score,
        distance=solution.distance,
        changed=changed,
        needs_review=np.array([bool(words) for words in reason]),
        reason=reason,
        duplicate_of=duplicate_of,
        corrected=corrected,
        truth=read_truth(settings, file_name) if settings.truth else None,
    )


def _becomes_unknown(
    settings: LabelSettings, solution: Solution, far: Bool[np.ndarray, " image"]
) -> Bool[np.ndarray, " image"]:
    low: Bool[np.ndarray, " image"] = solution.top[:, 0] < settings.min_score
    return low | far if settings.allow_unknown else low


def read_truth(
    settings: LabelSettings, file_name: Sequence[str] | None
) -> Int[np.ndarray, " image"] | None:
    """The class of each image by the file of --truth; refused if it is about other images."""
    told = read_labeled(settings.path(settings.truth))
    if file_name is None:
        return None
    truth = places_of([told.get(name) for name in file_name], settings.names)
    if (truth == UNKNOWN).all():
        raise InvalidFile(
            f"Expected the truth of these images in {settings.truth}, found none of their names "
            f"with one of the classes; its first line is {next(iter(told.items()), 'missing')}, "
            f"the first image is {file_name[0]!r}."
        )
    return truth


def summary_of(
    problem: Problem,
    solution: Solution,
    table: LabelTable,
    classes: ClassNames,
    *,
    seconds: Mapping[str, float],
    command: str,
) -> Summary:
    if solution.choices:
        first = solution.choices[0]
        method, choice = first.method.name, first.reason
        present, estimated = _median_present(solution), first.estimated
    else:
        method, choice, present, estimated = "corrections", "all images are corrected", 0, False
    return Summary(
        images=len(table),
        skipped=problem.store.meta.skipped,
        duplicates=sum(1 for name in table.duplicate_of if name),
        method=method if len({batch.method for batch in solution.batches}) <= 1 else "mixed",
        choice=choice,
        classes_present=present,
        estimated=estimated,
        changed=int(table.changed.sum()),
        needs_review=int(table.needs_review.sum()),
        unknown=int((table.label == UNKNOWN).sum()),
        corrected=int(table.corrected.sum()),
        classes=_classes(table, classes),
        batches=tuple(solution.batches),
        warnings=tuple(_warnings(problem, solution, table)),
        seconds={stage: round(value, 3) for stage, value in seconds.items()},
        command=command,
        version=transduce.__version__,
        evaluation=evaluate(table, classes),
    )


def _median_present(solution: Solution) -> int:
    return int(np.median([choice.classes_present for choice in solution.choices]))


def _classes(table: LabelTable, classes: ClassNames) -> tuple[ClassSummary, ...]:
    def count(chosen: np.ndarray) -> Int[np.ndarray, " class"]:
        return np.bincount(chosen[chosen != UNKNOWN], minlength=len(classes))

    zero_shot, joint = count(table.zero_shot_label), count(table.label)
    review = count(table.label[table.needs_review])
    return tuple(
        ClassSummary(label=name, zero_shot=int(z), joint=int(j), sure=int(j - r), review=int(r))
        for name, z, j, r in zip(classes.labels, zero_shot, joint, review, strict=True)
    )


def _warnings(problem: Problem, solution: Solution, table: LabelTable) -> list[str]:
    found = []
    if len(table) < problem.n_classes:
        found.append(
            f"There are fewer images ({len(table):,}) than classes ({problem.n_classes:,}): the "
            "batch says little about each class."
        )
    slow = [batch for batch in solution.batches if not batch.converged]
    if slow:
        found.append(
            f"{len(slow):,} of {len(solution.batches):,} batches stopped after "
            f"{slow[0].iterations} iterations, before the answer settled."
        )
    learnt = [choice for choice in solution.choices if choice.method.name != "zero-shot"]
    if learnt:
        found += _collapse(solution, table)
    return found


def _collapse(solution: Solution, table: LabelTable) -> list[str]:
    """Signs that the joint answer is worse than zero-shot's, seen without any truth."""
    advice = "Compare the column zero_shot_label; for these labels alone: --method zero-shot."
    seen = {int(k) for choice in solution.choices for k in choice.presence.classes}
    used = len(np.unique(table.label[table.label != UNKNOWN]))
    if used < COLLAPSED * len(seen):
        return [
            f"The joint answer looks collapsed: it uses {used:,} classes where zero-shot saw "
            f"{len(seen):,}. {advice}"
        ]
    doubtful = sum(
        choice.presence.expected_error * batch.images
        for choice, batch in zip(solution.choices, solution.batches, strict=True)
    )
    changed = int((table.changed & (table.label != UNKNOWN) & ~table.corrected).sum())
    if changed > TOO_MANY_CHANGES * doubtful + 1:
        return [
            f"The joint answer changes {changed:,} labels where zero-shot itself expects about "
            f"{doubtful:,.0f} to be wrong. {advice}"
        ]
    return []
