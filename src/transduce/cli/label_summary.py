"""What `transduce label` prints at its end, within 80 columns: for everybody, and in detail."""

import math
import os
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator

from transduce.errors import counted
from transduce.labeling.embedder import skip_reasons
from transduce.labeling.evaluation import Evaluation
from transduce.labeling.inputs import left_out
from transduce.labeling.run_directory import FEATURES, REPORT, SKIPPED, VIEW, RunDirectory
from transduce.labeling.settings import AUTO, UNKNOWN
from transduce.labeling.summary import ClassSummary, Summary
from transduce.labeling.table import (
    CHANGED,
    CLOSE_CALL,
    DUPLICATE,
    FAR,
    NEIGHBORS,
    TINY,
    LabelTable,
)

WIDTH = 80
MOST_CLASSES = 25
LONGEST_NAME = 30
AUDIT = 100  # images: enough for a first certificate

# The reasons to check an image, as one would say them of some images.
IN_WORDS = {
    CLOSE_CALL: "between two classes",
    CHANGED: "where the names alone said another class",
    NEIGHBORS: "unlike others of their class",
    FAR: "far from every class",
    DUPLICATE: "same picture, other label",
    TINY: "almost alone in their class",
}


def summary_lines(run: RunDirectory, *, details: bool = False) -> list[str]:
    """Return what is printed at the end of a run; with `details` also how it was solved."""
    summary = run.summary
    return [
        *_labeled(summary, len(run.classes)),
        *(_detailed_table(summary.classes) if details else _table(summary.classes)),
        *_to_check(run),
        *_not_labeled(run),
        *(_truth(run, summary.evaluation, details=details) if summary.evaluation else ()),
        *(_solved(summary, len(run.classes)) if details else _alone(run)),
        *(line for warning in summary.warnings for line in _wrap(f"Warning: {warning}")),
        *(_files(run) if details else ()),
        *_next(run, details=details),
    ]


def printable(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a name without control characters, cut to `longest` letters."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _labeled(summary: Summary, n_classes: int) -> Iterator[str]:
    used = sum(1 for entry in summary.classes if entry.joint)
    each = "all" if used == n_classes else f"{used:,}"
    text = f"Labeled   {counted(summary.images, 'image')} with {each} of your {n_classes:,} classes"
    if summary.unknown:
        text += f", {summary.unknown:,} as unknown"
    if summary.corrected:
        text += f", {summary.corrected:,} by hand"
    yield from _wrap(text)
    if summary.like:
        before = counted(summary.before, "image")
        yield from _wrap(f"Joined    the {before} before, of {os.path.relpath(summary.like)}")


def _table(classes: tuple[ClassSummary, ...]) -> Iterator[str]:
    shown = _largest([entry for entry in classes if entry.joint])
    heads = ("images", "look right", "to check")
    rows = [(entry, (entry.joint, entry.looks_right, entry.review)) for entry in shown]
    yield from _columns(heads, [(e, [f"{n:,}" if n else "-" for n in c]) for e, c in rows])
    hidden = sum(1 for entry in classes if entry.joint) - len(shown)
    if hidden:
        yield f"  and {counted(hidden, 'class', 'classes')} with fewer images: see the report"


def _detailed_table(classes: tuple[ClassSummary, ...]) -> Iterator[str]:
    shown = _largest([entry for entry in classes if entry.zero_shot or entry.joint])
    heads = ("zero-shot", "joint", "change", "look right", "to check")
    rows = []
    for entry in shown:
        change = f"{entry.joint - entry.zero_shot:+,}" if entry.joint != entry.zero_shot else "0"
        counts = (f"{entry.zero_shot:,}", f"{entry.joint:,}", change)
        rows.append((entry, [*counts, f"{entry.looks_right:,}", f"{entry.review:,}"]))
    yield from _columns(heads, rows)
    hidden = len(classes) - len(shown)
    if hidden:
        yield f"  and {counted(hidden, 'class', 'classes')} with fewer images or none"


def _largest(shown: list[ClassSummary]) -> list[ClassSummary]:
    return sorted(shown, key=lambda entry: (-entry.joint, -entry.zero_shot))[:MOST_CLASSES]


def _columns(heads: tuple[str, ...], rows: list[tuple[ClassSummary, list[str]]]) -> Iterator[str]:
    width = max([5, *(len(printable(entry.label)) for entry, _ in rows)])
    yield f"  {'class':<{width}}" + "".join(f"  {head:>10}" for head in heads)
    for entry, cells in rows:
        numbers = "".join(f"  {cell:>10}" for cell in cells)
        yield f"  {printable(entry.label):<{width}}{numbers}"


def _to_check(run: RunDirectory) -> Iterator[str]:
    summary, folder = run.summary, shlex.quote(os.path.relpath(run.folder))
    fine = summary.images - summary.needs_review - summary.corrected
    if summary.needs_review:
        reasons = ", ".join(f"{n:,} {words}" for words, n in _reasons(run.labels).most_common())
        yield from _wrap(f"To check  {counted(summary.needs_review, 'image')}: {reasons}")
    checked = f"{_about(summary.expected_wrong_to_check)} of those to check"
    text = f"Expect    {checked} to be wrong"
    if fine > 0:
        wrong, most = _about(summary.expected_wrong), math.ceil(summary.most_wrong)
        text = f"Expect    {wrong} of the {fine:,} that look right to be wrong"
        text += f" (perhaps up to {most:,})" if most > 1 else ""
        text += f", and {checked}" if summary.needs_review else ""
    if fine > 0 or summary.needs_review:
        yield from _wrap(f"{text}: the method's own estimate")
    if run.can_be_seen and summary.images > AUDIT:
        yield f"          measure it: transduce review {folder} --audit {AUDIT}"


def _about(number: float) -> str:
    return "hardly any" if number < 0.5 else f"about {round(number):,}"


def _reasons(labels: LabelTable) -> Counter[str]:
    counts: Counter[str] = Counter()
    for reason in filter(None, labels.reason):
        counts.update(IN_WORDS.get(part, part) for part in reason.split("; "))
    return counts


def _not_labeled(run: RunDirectory) -> Iterator[str]:
    summary = run.summary
    if summary.skipped:
        where = os.path.relpath(run.folder / SKIPPED)
        yield from _wrap(
            f"Skipped   {counted(summary.skipped, 'file')} ({skip_reasons(run.skipped())}): listed "
            f"in {where}"
        )
    others = left_out(summary.ignored, summary.videos)
    if others:
        yield from _wrap(f"Left out  {others}")
    if summary.duplicates:
        copies = counted(summary.duplicates, "image is an exact copy", "images are exact copies")
        yield f"Twice     {copies} of others"


def _truth(run: RunDirectory, truth: Evaluation, *, details: bool) -> Iterator[str]:
    low, high = truth.accuracy_interval
    right = round(truth.accuracy * truth.images)
    if not details:
        yield from _wrap(
            f"Truth     {right:,} of {counted(truth.images, 'label')} are right, "
            f"{truth.accuracy:.1%} ({low:.1%} to {high:.1%}); labeled one by one it "
            f"would be {truth.zero_shot_accuracy:.1%}; wrong are {_wrong(run)}"
        )
        return
    zero_low, zero_high = truth.zero_shot_interval
    yield f"Truth     of {counted(truth.images, 'image')}"
    yield f"  zero-shot  {truth.zero_shot_accuracy:6.1%}  ({zero_low:.1%} to {zero_high:.1%})"
    yield f"  joint      {truth.accuracy:6.1%}  ({low:.1%} to {high:.1%})"
    yield (
        f"  gain       {100 * truth.gain:+5.1f}   {truth.fixed:,} fixed, {truth.broken:,} "
        f"broken, p = {truth.p_value:.2g} (McNemar)"
    )
    yield f"  calibration error {truth.calibration_error:.1%} (score against accuracy)"
    worst = sorted((entry for entry in truth.recalls if entry.images), key=lambda e: e.joint)[:3]
    named = ", ".join(f"{printable(entry.label)} {entry.joint:.0%}" for entry in worst)
    yield from _wrap(f"  lowest recall: {named}")


def _wrong(run: RunDirectory) -> str:
    """Return how many labels are wrong by the truth, of those to check and of the others."""
    labels = run.labels
    assert labels.truth is not None
    known = (labels.truth != UNKNOWN) & ~labels.corrected
    wrong = known & (labels.label != labels.truth)
    check = known & labels.needs_review
    return (
        f"{int((wrong & ~check).sum()):,} of the {int((known & ~check).sum()):,} that look right "
        f"and {int((wrong & check).sum()):,} of the {int(check.sum()):,} to check"
    )


def _alone(run: RunDirectory) -> Iterator[str]:
    """Yield a remark if a single image was labeled by its class names alone."""
    if run.settings.method == AUTO and run.summary.method == "zero-shot":
        yield from _wrap(f"Alone     {run.summary.choice}: its label is by the class names only")


def _solved(summary: Summary, n_classes: int) -> Iterator[str]:
    yield from _wrap(f"Method    {summary.method}{_ended(summary)}: {summary.choice}")
    known = "estimated" if summary.estimated else "as asked"
    yield f"Present   {summary.classes_present:,} of {n_classes:,} classes, {known}"
    if summary.view:
        yield from _wrap(f"View      images are compared by {summary.view}")
    yield from _wrap(f"Changed   {counted(summary.changed, 'label')} from zero-shot's")
    spent = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in summary.seconds.items())
    if spent:
        yield from _wrap(f"Time      {spent}")


def _ended(summary: Summary) -> str:
    if len(summary.batches) > 1:
        return f", {len(summary.batches):,} batches"
    if not summary.batches or summary.method == "zero-shot":
        return ""
    batch = summary.batches[0]
    if "changed" in batch.estimates:  # a fixed schedule
        moved = round(batch.images * batch.estimates["changed"])
        labels = counted(moved, "label") if moved else "no labels"
        return f", the last of {batch.iterations} steps changed {labels}"
    how = "converged in" if batch.converged else "stopped after"
    return f", {how} {batch.iterations} iterations"


def _files(run: RunDirectory) -> Iterator[str]:
    names = sorted(entry.name for entry in run.folder.iterdir())
    names = [name for name in names if name not in (FEATURES, VIEW) and name[0] != "."]
    yield f"Wrote     {os.path.relpath(run.folder)}/"
    yield from _wrap("  " + "  ".join(names))


def _next(run: RunDirectory, *, details: bool) -> Iterator[str]:
    folder = os.path.relpath(run.folder)
    quoted = shlex.quote(folder)
    yield "Next"
    if (run.folder / REPORT).exists():
        yield f"  look      {folder}/{REPORT}"
    if run.can_be_seen:
        yield f"  correct   transduce review {quoted}"
    else:
        yield f"  correct   transduce review {quoted} --images FOLDER_OF_THEM"
    yield f"  use       transduce export {quoted} --to csv"
    if not details:
        yield "  more      the same command with --details, or the end of the report"


def _wrap(text: str) -> list[str]:
    indent = "          " if text[:10].rstrip() != text[:10] else "  "
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]
