"""What `transduce label` prints at its end, within 80 columns."""

import os
import shlex
import textwrap
from collections.abc import Iterator

from transduce.labeling.evaluation import Evaluation
from transduce.labeling.run_directory import FEATURES, REPORT, VIEW, RunDirectory
from transduce.labeling.summary import ClassSummary, Summary

WIDTH = 80
MOST_CLASSES = 25
LONGEST_NAME = 30


def summary_lines(run: RunDirectory) -> list[str]:
    """Return what is printed at the end of a run."""
    summary = run.summary
    return [
        *_solved(summary, len(run.classes)),
        *_table(summary.classes),
        *_counts(summary),
        *(_evaluation(summary.evaluation) if summary.evaluation else ()),
        *(line for warning in summary.warnings for line in _wrap(f"Warning: {warning}")),
        *_where(run),
    ]


def printable(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a name without control characters, cut to `longest` letters."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _solved(summary: Summary, n_classes: int) -> Iterator[str]:
    ended = ""
    if len(summary.batches) == 1 and summary.method != "zero-shot":
        batch = summary.batches[0]
        if "changed" in batch.estimates:  # a fixed schedule
            moved = round(batch.images * batch.estimates["changed"])
            ended = f", the last of {batch.iterations} steps changed {moved or 'no'} labels"
        else:
            how = "converged in" if batch.converged else "stopped after"
            ended = f", {how} {batch.iterations} iterations"
    elif len(summary.batches) > 1:
        ended = f", {len(summary.batches)} batches"
    yield from _wrap(f"Method    {summary.method}{ended}: {summary.choice}")
    known = "estimated" if summary.estimated else "as asked"
    yield f"Present   {summary.classes_present:,} of {n_classes:,} classes, {known}"
    if summary.view:
        yield from _wrap(f"View      images are compared by {summary.view}")


def _table(classes: tuple[ClassSummary, ...]) -> Iterator[str]:
    shown = [entry for entry in classes if entry.zero_shot or entry.joint]
    largest = sorted(shown, key=lambda entry: -max(entry.joint, entry.zero_shot))[:MOST_CLASSES]
    shown = [entry for entry in shown if entry in largest]
    width = max([5, *(len(printable(entry.label)) for entry in shown)])
    heads = ("zero-shot", "joint", "change", "sure", "review")
    yield f"  {'class':<{width}}" + "".join(f"  {head:>9}" for head in heads)
    for entry in shown:
        change = f"{entry.joint - entry.zero_shot:+,}" if entry.joint != entry.zero_shot else "0"
        counts = (f"{entry.zero_shot:,}", f"{entry.joint:,}")
        numbers = (*counts, change, f"{entry.sure:,}", f"{entry.review:,}")
        cells = "".join(f"  {number:>9}" for number in numbers)
        yield f"  {printable(entry.label):<{width}}{cells}"
    hidden = len(classes) - len(shown)
    if hidden:
        yield f"  (and {hidden:,} more with fewer images or none: see report and summary.json)"


def _counts(summary: Summary) -> Iterator[str]:
    changed = f"{summary.changed:,} of {summary.images:,} labels are not zero-shot's"
    parts = [changed, f"{summary.needs_review:,} to review"]
    if summary.unknown:
        parts.append(f"{summary.unknown:,} unknown")
    if summary.corrected:
        parts.append(f"{summary.corrected:,} corrected by hand")
    yield from _wrap("Labels    " + ", ".join(parts))


def _evaluation(truth: Evaluation) -> Iterator[str]:
    low, high = truth.accuracy_interval
    zero_low, zero_high = truth.zero_shot_interval
    yield f"Truth     of {truth.images:,} images"
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


def _where(run: RunDirectory) -> Iterator[str]:
    folder = os.path.relpath(run.folder)
    names = sorted(entry.name for entry in run.folder.iterdir())
    names = [name for name in names if name not in (FEATURES, VIEW) and name[0] != "."]
    yield f"Wrote {folder}/"
    yield from _wrap("  " + "  ".join(names))
    if REPORT in names:
        yield f"Look at {folder}/{REPORT}"
    yield f"Next: transduce review {shlex.quote(folder)}"


def _wrap(text: str) -> list[str]:
    indent = "          " if text[:10].rstrip() != text[:10] else "  "
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]
