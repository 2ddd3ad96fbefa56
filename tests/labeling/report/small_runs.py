"""Run directories made by hand: chosen probabilities, images of one color, awkward names."""

import itertools
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from PIL import Image

from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Identity
from transduce.features.layout import Skip
from transduce.labeling import files, run_directory
from transduce.labeling.evaluation import Evaluation, Recall, ReliabilityBin
from transduce.labeling.problem import BatchSummary
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import LabelSettings, to_toml
from transduce.labeling.summary import ClassSummary, Summary
from transduce.labeling.table import CHANGED, CLOSE_CALL, LabelTable
from transduce.machine.atomic import to_plain

IDENTITY = Identity(encoder="small", weights="none", preprocessing="none", dimension=4)


def draw_images(folder, names, size=(40, 30)):
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (number * 37 % 256, number * 91 % 256, 120)).save(path, "PNG")
        paths.append(path)
    return paths


def small_run(
    folder, *, images=12, classes=("cat", "dog", "fox"), names=None, paths=None, truth=True,
    truth_indices=None, probabilities=None, zero_shot=None, objective=(9.0, 4.0, 3.5), seed=0,
):  # fmt: skip
    """Write a run with `images` images; labels, doubts and truth follow from a seed."""
    generator = np.random.default_rng(seed)
    names = names or [f"image {number:03d}.png" for number in range(images)]
    paths = paths if paths is not None else draw_images(folder / "images", names)
    if probabilities is None:
        probabilities = generator.dirichlet(np.full(len(classes), 0.3), len(names))
    probabilities = np.asarray(probabilities)
    if zero_shot is None:
        other = generator.dirichlet(np.ones(len(classes)), len(names))
        zero_shot = 0.5 * probabilities + 0.5 * other
    probabilities, zero_shot = np.float32(probabilities), np.float32(zero_shot)
    if truth_indices is None:
        truth_indices = generator.integers(len(classes), size=len(names))
    table = _table(names, paths, probabilities, zero_shot, truth_indices if truth else None)
    known = ClassNames.of(classes)
    settings = LabelSettings(
        source=str(folder / "images"), classes=known.labels, prompts=known.prompts
    )
    run = RunDirectory(
        folder=folder / "out" / "transduce-001",
        settings=settings,
        classes=known,
        identity=IDENTITY,
        labels=table,
        summary=_summary(table, known, objective),
    )
    _write(run, probabilities)
    return RunDirectory.load(run.folder)


def _table(names, paths, probabilities, zero_shot, truth):
    ordered = np.sort(probabilities, axis=1)
    label, before = probabilities.argmax(1), zero_shot.argmax(1)
    margin = ordered[:, -1] - ordered[:, -2]
    doubts = {CLOSE_CALL: margin < 0.3, CHANGED: (label != before) & (zero_shot.max(1) > 0.6)}
    entropy = -(probabilities * np.log(probabilities + 1e-12)).sum(1) / np.log(len(ordered[0]))
    return LabelTable(
        file_name=tuple(names),
        image_path=tuple(str(path) for path in paths),
        label=label,
        score=ordered[:, -1],
        margin=margin,
        entropy=np.float32(entropy),
        doubt=1 - ordered[:, -1],
        zero_shot_label=before,
        zero_shot_score=zero_shot.max(1),
        distance=1 - zero_shot.max(1),
        strangeness=np.zeros(len(names), np.float32),
        changed=label != before,
        needs_review=np.any(list(doubts.values()), axis=0),
        reason=tuple(
            "; ".join(reason for reason, flags in doubts.items() if flags[row])
            for row in range(len(names))
        ),
        duplicate_of=("",) * len(names),
        corrected=np.zeros(len(names), dtype=bool),
        truth=truth,
    )


def _summary(table, classes, objective):
    def entry(k, label):
        given = table.label == k
        review = int((given & table.needs_review).sum())
        return ClassSummary(
            label=label,
            zero_shot=int((table.zero_shot_label == k).sum()),
            joint=int(given.sum()),
            looks_right=int(given.sum()) - review,
            review=review,
        )

    return Summary(
        images=len(table),
        skipped=1,
        duplicates=0,
        method="hard-em-dirichlet",
        choice="most classes are present",
        classes_present=len(classes),
        estimated=True,
        changed=int(table.changed.sum()),
        needs_review=int(table.needs_review.sum()),
        unknown=0,
        corrected=0,
        classes=tuple(entry(k, label) for k, label in enumerate(classes.labels)),
        batches=(
            BatchSummary(
                images=len(table), method="hard-em-dirichlet", classes_present=len(classes),
                iterations=len(objective), converged=True, objective=tuple(objective), seconds=0.01,
            ),
        ),
        seconds={"embedding": 1.5, "solving": 0.01},
        command=f"transduce label photos/ --classes {','.join(classes.labels)}",
        version="0",
        evaluation=None if table.truth is None else _evaluation(table, classes),
    )  # fmt: skip


def _evaluation(table, classes):
    right, before = table.label == table.truth, table.zero_shot_label == table.truth
    confusion = np.zeros((len(classes), len(classes) + 1), dtype=int)
    np.add.at(confusion, (table.truth, table.label), 1)
    edges = np.linspace(0, 1, 11)
    bins = []
    for low, high in itertools.pairwise(edges):
        inside = (table.score >= low) & ((table.score < high) | (high == 1))
        count = int(inside.sum())
        bins.append(ReliabilityBin(
            low=float(low), high=float(high), images=count,
            confidence=float(table.score[inside].mean()) if count else 0.0,
            accuracy=float(right[inside].mean()) if count else 0.0,
        ))  # fmt: skip
    return Evaluation(
        images=len(table),
        accuracy=float(right.mean()),
        accuracy_interval=(0.2, 0.9),
        zero_shot_accuracy=float(before.mean()),
        zero_shot_interval=(0.1, 0.8),
        fixed=int((right & ~before).sum()),
        broken=int((before & ~right).sum()),
        p_value=0.04,
        recalls=tuple(
            Recall(
                label=name,
                images=int((table.truth == k).sum()),
                zero_shot=_share(before[table.truth == k]),
                joint=_share(right[table.truth == k]),
            )
            for k, name in enumerate(classes.labels)
        ),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        reliability=tuple(bins),
        calibration_error=0.1,
    )  # fmt: skip


def _share(flags):
    return float(flags.mean()) if len(flags) else 0.0


def _write(run, probabilities):
    run.folder.mkdir(parents=True)
    files.write_labels_csv(run.folder / run_directory.LABELS_CSV, run.labels, run.classes)
    files.write_labels_parquet(
        run.folder / run_directory.LABELS_PARQUET, run.labels, run.classes, probabilities
    )
    described = {
        "labels": run.classes.labels, "prompts": run.classes.prompts, "encoder": asdict(IDENTITY),
    }  # fmt: skip
    (run.folder / run_directory.CLASSES).write_text(json.dumps(described))
    (run.folder / run_directory.RUN).write_text(to_toml(run.settings), encoding="utf-8")
    (run.folder / run_directory.SUMMARY).write_text(json.dumps(to_plain(run.summary)))
    skips = [Skip("broken <i>.png", str(Path("/nowhere/broken <i>.png")), "corrupt", "bad header")]
    files.write_skipped(run.folder / run_directory.SKIPPED, skips)
