"""What a run found, in figures: `summary.json`, for the terminal, the report and scripts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

import transduce
from transduce.encoders.class_names import ClassNames
from transduce.errors import counted
from transduce.labeling.automatic import has_iterations
from transduce.labeling.drift import drift_warnings
from transduce.labeling.evaluation import Evaluation, evaluate_labels
from transduce.labeling.problem import BatchSummary, Problem, Solution
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.table import LabelTable
from transduce.labeling.trust.doubt import most_wrong

COLLAPSED = 0.6  # the answer uses less than this share of the classes that zero-shot saw
TOO_MANY_CHANGES = 1.5  # times as many as zero-shot itself expects to be wrong on


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSummary:
    """One line of the table of classes."""

    label: str
    zero_shot: int  # images that zero-shot gives this class
    joint: int  # images labeled with it
    looks_right: int  # of these, the ones with no reason to check them
    review: int  # the ones to check


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of a run."""

    images: int
    skipped: int
    duplicates: int
    method: str
    choice: str  # why this method and this number of classes, in words
    classes_present: int
    estimated: bool  # whether that number is an estimate
    changed: int
    needs_review: int
    unknown: int
    corrected: int
    classes: tuple[ClassSummary, ...]
    batches: tuple[BatchSummary, ...]
    warnings: tuple[str, ...] = ()  # "the joint answer looks collapsed ..." and the like
    seconds: Mapping[str, float] = field(default_factory=dict)  # by stage
    command: str = ""
    version: str = ""
    evaluation: Evaluation | None = None
    view: str = ""  # the encoder that images were compared by, if it is not that of the names
    ignored: int = 0  # files of the source that are no images by their name
    videos: int = 0  # of these
    expected_wrong: float = 0.0  # labels that look right and are wrong, by their doubt
    expected_wrong_to_check: float = 0.0  # the same of the labels to check
    most_wrong: float = 0.0  # of those that look right, in 19 of 20 runs
    like: str = ""  # the run that these images joined
    before: int = 0  # the images that were labeled before, in it and in those it joined


def summarize(
    problem: Problem,
    solution: Solution,
    table: LabelTable,
    *,
    seconds: Mapping[str, float],
    command: str,
) -> Summary:
    """Return the figures of a solution; `seconds` by stage."""
    classes = problem.settings.names
    if solution.choices:
        first = solution.choices[0]
        method, choice = first.method.name, solution.batches[0].explanation
        present = int(np.median([batch.classes_present for batch in solution.batches]))
        estimated = first.estimated
    else:
        method, choice, present, estimated = "corrections", "all images are corrected", 0, False
    fine = ~table.needs_review & ~table.corrected
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
        evaluation=evaluate_labels(table, table.truth, classes)
        if table.truth is not None
        else None,
        view=_view(problem, solution),
        ignored=problem.ignored,
        like=problem.settings.like,
        before=0 if problem.past is None else round(problem.past.images),
        videos=problem.videos,
        expected_wrong=round(float(table.doubt[fine].sum()), 2),
        expected_wrong_to_check=round(float(table.doubt[table.needs_review].sum()), 2),
        most_wrong=round(most_wrong(table.doubt[fine], table.label[fine]), 2),
    )


def _view(problem: Problem, solution: Solution) -> str:
    """Return the encoder of the view if a batch was solved with it."""
    used = any(getattr(choice.method, "uses_view", False) for choice in solution.choices)
    return problem.view.store.identity.encoder if problem.view is not None and used else ""


def _classes(table: LabelTable, classes: ClassNames) -> tuple[ClassSummary, ...]:
    def count(labels: Int[np.ndarray, " image"]) -> Int[np.ndarray, " class"]:
        return np.bincount(labels[labels != UNKNOWN], minlength=len(classes))

    zero_shot, joint = count(table.zero_shot_label), count(table.label)
    review = count(table.label[table.needs_review])
    return tuple(
        ClassSummary(
            label=name, zero_shot=int(z), joint=int(j), looks_right=int(j - r), review=int(r)
        )
        for name, z, j, r in zip(classes.labels, zero_shot, joint, review, strict=True)
    )


CHANGED = "changed"  # the estimate of `anchored`: share of labels that its last step changed
RESTLESS = 0.02  # of the labels


def _warnings(problem: Problem, solution: Solution, table: LabelTable) -> list[str]:
    warnings: list[str] = []
    if problem.past is not None and solution.drift is not None:
        warnings += drift_warnings(problem.settings, problem.past, solution.drift, len(table))
    elif len(table) < problem.n_classes:
        warnings.append(
            f"There are fewer images ({len(table):,}) than classes ({problem.n_classes:,}), so "
            "they say little about each class: add images, or leave out classes that cannot occur."
        )
    # `anchored` keeps a schedule of its own and says how many labels its last step changed.
    slow = [b for b in solution.batches if not b.converged and CHANGED not in b.estimates]
    if slow:
        warnings.append(
            f"{len(slow):,} of {counted(len(solution.batches), 'batch', 'batches')} stopped after "
            f"{counted(slow[0].iterations, 'iteration')}, before the answer settled"
            f"{'' if problem.settings.iterations else ', as published'}; "
            f"{_remedy(slow[0].method, slow[0].iterations)}--method auto has no such limit."
        )
    images = sum(batch.images for batch in solution.batches)
    moved = sum(batch.images * batch.estimates.get(CHANGED, 0.0) for batch in solution.batches)
    if moved > RESTLESS * images:
        warnings.append(
            f"{moved / images:.1%} of the labels still changed in the last step: those images lie "
            "between classes; review them first."
        )
    # `anchored` leans back to the names by itself; the published methods can collapse.
    if any(batch.method not in ("zero-shot", "anchored") for batch in solution.batches):
        warnings += _collapse(solution, table)
    return warnings


def _remedy(method: str, iterations: int) -> str:
    """Return what to type for more iterations, where a method takes them."""
    return f"--iterations {10 * iterations} allows more, " if has_iterations(method) else ""


def _collapse(solution: Solution, table: LabelTable) -> list[str]:
    """Return signs, visible without a truth, that the joint answer is worse than zero-shot's."""
    advice = "Compare the column zero_shot_label; for these labels alone: --method zero-shot."
    seen = {int(k) for choice in solution.choices for k in choice.presence.classes}
    used = len(np.unique(table.label[table.label != UNKNOWN]))
    if used < COLLAPSED * len(seen):
        return [
            f"The joint answer looks collapsed: it uses {used:,} classes where zero-shot saw "
            f"{len(seen):,}. {advice}"
        ]
    expected_wrong = sum(
        choice.presence.expected_error * batch.images
        for choice, batch in zip(solution.choices, solution.batches, strict=True)
    )
    changed = int((table.changed & (table.label != UNKNOWN) & ~table.corrected).sum())
    if changed > TOO_MANY_CHANGES * expected_wrong + 1:
        return [
            f"The joint answer changes {changed:,} labels where zero-shot itself expects about "
            f"{expected_wrong:,.0f} to be wrong. {advice}"
        ]
    return []
