"""From a run directory to what its page shows."""

import base64
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from transduce.images.decoding import Unreadable
from transduce.images.file_types import is_container
from transduce.labeling.report import plots, probabilities, selection
from transduce.labeling.report.thumbnails import RunPictures
from transduce.labeling.report.view import Confusable, Flow, Picture, ReportView, ReviewQueue, Sheet
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.summary import ClassSummary, Evaluation
from transduce.labeling.table import UNKNOWN, UNKNOWN_LABEL

THUMBNAIL_SIDE = 128  # pixels; shown at 112 and smaller
THUMBNAIL_QUALITY = 70
CANDIDATES = 3
MOST_FLOWS = 12
MOST_CONFUSABLE = 12
LEAST_SHARE = 0.005  # of probability; below, two classes are not confused
MOST_SKIPPED = 200


def view_of(run: RunDirectory) -> ReportView:
    labels, summary = run.labels, run.summary
    queues = selection.queues(labels)
    queued = selection.fair_share(list(queues.values()), selection.MOST_QUEUED)
    sheets, sheets_left_out = selection.sheet_rows(labels, len(run.classes))
    on_sheets = [row for parts in sheets.values() for part in parts for row in part]
    album = Album(run, {*queued, *on_sheets})
    skipped = run.skipped()
    classes, empty = _classes(summary.classes)
    evaluation = summary.evaluation
    return ReportView(
        name=run.folder.name.lstrip("."),  # the hidden name is of a run not yet whole
        source=run.settings.source,
        images=summary.images,
        class_count=len(run.classes),
        changed=summary.changed,
        unknown=summary.unknown,
        corrected=summary.corrected,
        duplicates=summary.duplicates,
        method=summary.method,
        choice=summary.choice,
        warnings=summary.warnings,
        classes=classes,
        empty_classes=empty,
        flows=_flows(labels.zero_shot_label, labels.label, run.classes.labels),
        queue=ReviewQueue(
            pictures=album.pictures(queued),
            images=int(labels.needs_review.sum()),
            of_reason={reason: len(rows) for reason, rows in queues.items()},
        ),
        confidence=plots.confidence(
            labels.score, labels.score[~labels.needs_review], labels.zero_shot_score
        ),
        convergence=plots.convergence([batch.objective for batch in summary.batches]),
        batches=summary.batches,
        sheets=tuple(
            Sheet(
                label=run.classes.labels[place],
                images=int((labels.label == place).sum()),
                typical=album.pictures(typical),
                atypical=album.pictures(atypical),
            )
            for place, (typical, atypical) in sheets.items()
        ),
        sheets_left_out=sheets_left_out,
        confusable=album.confusable,
        skipped=tuple(skipped[:MOST_SKIPPED]),
        skipped_left_out=max(0, len(skipped) - MOST_SKIPPED),
        facts=_facts(run),
        command=summary.command,
        review_command=shlex.join(["transduce", "review", str(_final_folder(run.folder))]),
        evaluation=evaluation,
        reliability=plots.reliability(evaluation.reliability if evaluation else ()),
        confusion=plots.confusion(evaluation.confusion if evaluation else (), run.classes.labels),
        mistakes=_mistakes(evaluation, run.classes.labels),
    )


class Album:
    """The pictures of the page; a picture that is used twice is read once."""

    def __init__(self, run: RunDirectory, rows: Iterable[int]) -> None:
        self._run = run
        self._reader = RunPictures(run)
        self._names = (*run.classes.labels, UNKNOWN_LABEL)  # UNKNOWN is -1: the last
        self._candidates, pairs = probabilities.read(
            run.folder, run.labels.label, len(run.classes), rows, CANDIDATES
        )
        self._made: dict[int, Picture] = {}
        found = pairs.most_confusable(MOST_CONFUSABLE, LEAST_SHARE) if pairs else []
        self.confusable = tuple(
            Confusable(self._names[first], self._names[second], share)
            for first, second, share in found
        )

    def pictures(self, rows: Sequence[int]) -> tuple[Picture, ...]:
        for row in rows:
            if row not in self._made:
                self._made[row] = self._picture(row)
        return tuple(self._made[row] for row in rows)

    def _picture(self, row: int) -> Picture:
        table = self._run.labels
        truth = UNKNOWN if table.truth is None else table.truth[row]
        return Picture(
            row=row,
            file_name=table.file_name[row],
            href=_href(table.image_path[row]),
            thumbnail=self._thumbnail(row),
            label=self._names[table.label[row]],
            score=float(table.score[row]),
            margin=float(table.margin[row]),
            distance=float(table.distance[row]),
            zero_shot_label=self._names[table.zero_shot_label[row]],
            zero_shot_score=float(table.zero_shot_score[row]),
            changed=bool(table.changed[row]),
            reasons=table.reasons(row),
            duplicate_of=table.duplicate_of[row],
            candidates=tuple(
                (self._names[place], share) for place, share in self._candidates.get(row, ())
            ),
            truth="" if truth == UNKNOWN else self._names[truth],
        )

    def _thumbnail(self, row: int) -> str:
        try:
            data = self._reader.jpeg(row, THUMBNAIL_SIDE, THUMBNAIL_QUALITY)
        except Unreadable:  # gone since it was embedded; the page shows its name
            return ""
        return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"


def _classes(
    classes: Sequence[ClassSummary],
) -> tuple[tuple[ClassSummary, ...], tuple[str, ...]]:
    """Those that occur, the largest first, and the names of the others."""
    used = [entry for entry in classes if entry.joint or entry.zero_shot]
    used.sort(key=lambda entry: (-entry.joint, -entry.zero_shot))
    return tuple(used), tuple(entry.label for entry in classes if entry not in used)


def _flows(
    before: Int[np.ndarray, " image"], after: Int[np.ndarray, " image"], names: Sequence[str]
) -> tuple[Flow, ...]:
    known = (*names, UNKNOWN_LABEL)
    moved = Counter(
        (int(old), int(new)) for old, new in zip(before, after, strict=True) if old != new
    )
    return tuple(
        Flow(known[old], known[new], count) for (old, new), count in moved.most_common(MOST_FLOWS)
    )


def _mistakes(evaluation: Evaluation | None, names: Sequence[str]) -> tuple[Flow, ...]:
    if evaluation is None:
        return ()
    known = (*names, UNKNOWN_LABEL)
    wrong = [
        Flow(known[truth], known[label], count)
        for truth, row in enumerate(evaluation.confusion)
        for label, count in enumerate(row)
        if truth != label and count
    ]
    return tuple(sorted(wrong, key=lambda flow: -flow.images)[:MOST_FLOWS])


def _facts(run: RunDirectory) -> dict[str, str]:
    summary, settings = run.summary, run.settings
    present = f"{summary.classes_present:,}" + (" (estimated)" if summary.estimated else "")
    facts = {
        "source": settings.source,
        "classes": f"{len(run.classes):,} given, {present} taken as present",
        "method": summary.method,
        "why": summary.choice,
        "prompts": ", ".join(settings.templates),
        "encoder": run.identity.encoder,
        "time": ", ".join(f"{stage} {spent:.1f} s" for stage, spent in summary.seconds.items()),
        "version": f"transduce {summary.version}" if summary.version else "",
    }
    return {name: value for name, value in facts.items() if value}


def _href(path: str) -> str:
    if not Path(path).is_absolute() or is_container(path):
        return ""
    return Path(path).as_uri()


def _final_folder(folder: Path) -> Path:
    return folder.with_name(folder.name.lstrip("."))
