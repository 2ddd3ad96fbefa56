"""Writing a run directory: under a hidden name first, renamed when it is whole."""

import os
from collections.abc import Mapping
from pathlib import Path

from transduce.atomic import replace_json, replace_text
from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Identity
from transduce.features.layout import Skip
from transduce.labeling import files, run_directory
from transduce.labeling.model import BatchModels
from transduce.labeling.settings import LabelSettings, to_toml
from transduce.labeling.solving import Problem, Solution
from transduce.labeling.summary import Summary
from transduce.labeling.table import LabelTable

CLASSES_FORMAT = {"format": "transduce-classes", "version": 1}


def write_run(
    folder: Path,
    problem: Problem,
    solution: Solution,
    table: LabelTable,
    summary: Summary,
    classes: ClassNames,
    corrections: Mapping[str, str],
) -> None:
    """All files but the report and the features."""
    settings = problem.settings
    files.write_csv(folder / run_directory.LABELS_CSV, table, classes)
    files.write_parquet(
        folder / run_directory.LABELS_PARQUET, table, classes, solution.probabilities
    )
    described = _classes(classes, settings, problem.store.identity)
    replace_json(folder / run_directory.CLASSES, described)
    _models(problem, solution, summary).write(folder / run_directory.MODEL)
    files.write_skipped(folder / run_directory.SKIPPED, _skipped(problem))
    if corrections:
        files.write_corrections(folder / run_directory.REVIEWED, corrections)
    replace_text(folder / run_directory.RUN, to_toml(settings))
    replace_json(folder / run_directory.SUMMARY, summary.to_json())


def _classes(
    classes: ClassNames, settings: LabelSettings, identity: Identity
) -> Mapping[str, object]:
    return {
        **CLASSES_FORMAT,
        "labels": list(classes.labels),
        "prompts": list(classes.prompts),
        "templates": list(settings.templates),
        "temperature": settings.temperature,
        "encoder": {name: getattr(identity, name) for name in Identity.__slots__},
    }


def _models(problem: Problem, solution: Solution, summary: Summary) -> BatchModels:
    shots = problem.shots
    return BatchModels(
        method=summary.method,
        temperature=problem.settings.temperature,
        class_embeddings=problem.class_embeddings,
        support_embeddings=shots.embeddings if len(shots) else None,
        support_labels=shots.labels if len(shots) else None,
        batches=tuple(solution.models),
    )


def _skipped(problem: Problem) -> list[Skip]:
    return problem.store.skipped()


def publish(hidden: Path, folder: Path) -> None:
    """Give the whole directory its name; from here on it can be loaded."""
    hidden.rename(folder)
    if os.name != "nt":  # make the new name survive a power cut
        descriptor = os.open(folder.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
