"""The run directory: the files of one labeling run, described in docs/labeling.md.

A run is written under a hidden name and then renamed, so that it appears whole; runs are numbered,
so that none overwrites another.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32

from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Identity
from transduce.errors import InvalidRun
from transduce.features.layout import Skip, read_skips
from transduce.features.store import FeatureStore
from transduce.labeling import files
from transduce.labeling.journal import REVIEWED, Journal
from transduce.labeling.problem import Problem, Solution
from transduce.labeling.settings import LabelSettings, label_names, read_settings, to_toml
from transduce.labeling.summary import Summary
from transduce.labeling.table import LabelTable
from transduce.machine.atomic import (
    from_plain,
    read_json,
    rename_folder,
    replace_json,
    replace_text,
)

if TYPE_CHECKING:
    from transduce.labeling.trust.audit import Audit

LABELS_CSV = "labels.csv"
LABELS_PARQUET = "labels.parquet"
CLASSES = "classes.json"
RUN = "run.toml"
SUMMARY = "summary.json"
MODEL = "model.safetensors"
SKIPPED = "skipped.csv"
REPORT = "report.html"
FEATURES = "features"
VIEW = "view"
CLASSES_FORMAT = "transduce-classes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClasses:
    """`classes.json`: the classes of a run, and how they were embedded."""

    labels: tuple[str, ...]
    prompts: tuple[str, ...]
    encoder: Identity
    format: str = CLASSES_FORMAT
    version: int = 1
    templates: tuple[str, ...] = ()
    temperature: float = 30.0


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class RunDirectory:
    """A finished run of `transduce label` on disk. Open it with `RunDirectory.load(folder)`.

    Parameters
    ----------
    folder : Path
        Where the run is.
    settings : LabelSettings
        What decided the labels; `run.toml`.
    classes : ClassNames
        The labels, in the order of the class axis of `probabilities()`, and their prompts.
    identity : Identity
        Of the encoder: two runs compare only if these are equal.
    labels : LabelTable
        One entry per image in each column, in the order of the feature store.
    summary : Summary
        Counts, warnings, how each batch was solved, the comparison with a truth.

    Examples
    --------
    >>> run = RunDirectory.load("out/transduce-001")  # doctest: +SKIP
    >>> run.summary.needs_review, run.probabilities().shape  # doctest: +SKIP
    (11, (300, 36))
    """

    folder: Path
    settings: LabelSettings
    classes: ClassNames
    identity: Identity
    labels: LabelTable
    summary: Summary

    @classmethod
    def load(cls, folder: str | Path) -> "RunDirectory":
        """Return the run in `folder`.

        Raises
        ------
        InvalidRun
            If the folder is no run directory, or not a whole one.
        """
        folder = Path(folder)
        if not (folder / SUMMARY).is_file():
            what = "no such folder" if not folder.is_dir() else f"no {SUMMARY} in it"
            raise InvalidRun(
                f"Expected a run directory at {folder}, found {what}; give one that "
                "transduce label wrote, such as out/transduce-001."
            )
        settings = read_settings(folder / RUN)
        try:
            described = read_json(folder / CLASSES, RunClasses)
            classes = ClassNames(described.labels, described.prompts)
            return cls(
                folder=folder,
                settings=settings,
                classes=classes,
                identity=described.encoder,
                labels=files.read_labels(folder / LABELS_PARQUET, classes),
                summary=_read_summary(folder / SUMMARY),
            )
        except Exception as error:  # damaged parquet and JSON raise nearly anything
            raise InvalidRun(
                f"Expected a whole run directory at {folder}, found {type(error).__name__}: "
                f"{error}; make it again: transduce label --run {folder / RUN}"
            ) from error

    @property
    def can_be_seen(self) -> bool:
        """Whether the images are known, and not their features alone."""
        return any(self.labels.image_path)

    def has(self, name: str) -> bool:
        """Whether there is a file of this name in the folder, such as a certificate."""
        return (self.folder / name).is_file()

    def probabilities(self) -> Float32[np.ndarray, "image class"]:
        """Return the probability of every class for every image, read from labels.parquet."""
        return np.concatenate([block for _, block in self.probability_blocks()])

    def probability_blocks(self) -> Iterator[tuple[int, Float32[np.ndarray, "row class"]]]:
        """Yield (first row, probabilities) in the order of the images, block by block."""
        return files.probability_blocks(self.folder / LABELS_PARQUET, len(self.classes))

    @property
    def doubt(self) -> Float32[np.ndarray, " image"]:
        """The estimated probability that each label is wrong (image,)."""
        return self.labels.doubt

    def audit(self, size: int, seed: int | None = None) -> "Audit":
        """Draw images at random to be answered by a person; see `certify`.

        Parameters
        ----------
        size : int
            How many images; 100 to 400 say a lot.
        seed : int, optional
            Repeats a draw; by default a new random one.

        Returns
        -------
        Audit
            With the file names to answer. The draw is recorded in the run directory first.
        """
        from transduce.labeling.trust.audit import draw_audit

        return draw_audit(self, size, seed)

    def store(self) -> FeatureStore:
        """Return the embeddings of the images, in the order of the labels."""
        return self._store(FEATURES, self.settings.features)

    def view(self) -> FeatureStore | None:
        """Return the embeddings by the encoder of the view; None if the run had none."""
        return self._store(VIEW, self.settings.view) if self.settings.view else None

    def _store(self, own: str, given: str) -> FeatureStore:
        folder = self.folder / own
        return FeatureStore.open(
            folder if folder.is_dir() or not given else self.settings.address(given)
        )

    def model(self) -> files.BatchModels:
        """Return the embeddings of the classes, the shots, and the fit of each batch."""
        return files.BatchModels.read(self.folder / MODEL)

    def skipped(self) -> list[Skip]:
        """Return what could not be read, with the reason."""
        return read_skips(self.folder / SKIPPED)

    def corrections(self) -> dict[str, str]:
        """Return the label (or `unknown`) of each file answered in a review; audits are apart."""
        return dict(self.journal().review)

    def journal(self) -> Journal:
        """Return the answers given about the run so far: reviews, audits and their draws."""
        return Journal.open(self.folder)


def _read_summary(path: Path) -> Summary:
    data = read_json(path, dict[str, Any])
    if data.get("evaluation") and "mended" in data["evaluation"]:  # its name in older runs
        data["evaluation"]["fixed"] = data["evaluation"].pop("mended")
    for entry in data.get("classes", ()):
        if isinstance(entry, dict) and "sure" in entry:  # likewise
            entry["looks_right"] = entry.pop("sure")
    return from_plain(Summary, data, str(path))


def write_run(
    folder: Path, problem: Problem, solution: Solution, table: LabelTable, summary: Summary
) -> None:
    """Write all files of a run but the report and the features."""
    settings, classes = problem.settings, problem.settings.names
    files.write_labels_csv(folder / LABELS_CSV, table, classes)
    files.write_labels_parquet(folder / LABELS_PARQUET, table, classes, solution.probabilities)
    described = RunClasses(
        labels=classes.labels,
        prompts=classes.prompts,
        templates=settings.templates,
        temperature=settings.temperature,
        encoder=problem.store.identity,
    )
    replace_json(folder / CLASSES, described)
    models = files.BatchModels(
        method=summary.method,
        temperature=settings.temperature,
        class_embeddings=problem.class_embeddings,
        support_embeddings=problem.shots.embeddings if len(problem.shots) else None,
        support_labels=problem.shots.labels if len(problem.shots) else None,
        support_view=problem.shots.view if len(problem.shots) else None,
        batches=tuple(model.arrays() for model in solution.models),
    )
    models.write(folder / MODEL)
    files.write_skipped(folder / SKIPPED, problem.store.skipped())
    if problem.fixed:
        names = label_names(classes)
        corrections = {table.file_name[row]: names[k] for row, k in problem.fixed.items()}
        files.write_corrections(folder / REVIEWED, corrections)
    replace_text(folder / RUN, to_toml(settings))
    replace_json(folder / SUMMARY, summary)


def new_run_folder(out: Path) -> Path:
    """Return the next free `out/transduce-NNN`, reserved by making it under its hidden name."""
    out.mkdir(parents=True, exist_ok=True)
    taken = [entry.name.lstrip(".") for entry in os.scandir(out)]
    numbers = [
        int(name[10:]) for name in taken if name[:10] == "transduce-" and name[10:].isdigit()
    ]
    number = max(numbers, default=0) + 1
    while True:
        try:
            hidden_name(out / f"transduce-{number:03d}").mkdir()
        except FileExistsError:  # another run was faster
            number += 1
        else:
            return out / f"transduce-{number:03d}"


def hidden_name(folder: Path) -> Path:
    """Return where a run is written until it is whole."""
    return folder.with_name(f".{folder.name}")


def copy_run(run: RunDirectory, out: Path) -> Path:
    """Copy the run with its features to the next free `out/transduce-NNN`; returns that folder."""
    folder = new_run_folder(out)
    shutil.copytree(run.folder, hidden_name(folder), dirs_exist_ok=True)
    if not (run.folder / FEATURES).is_dir():
        copy_store(run.store(), hidden_name(folder) / FEATURES)
    view = run.view()
    if view is not None and not (run.folder / VIEW).is_dir():
        copy_store(view, hidden_name(folder) / VIEW)
    rename_folder(hidden_name(folder), folder)
    return folder


def copy_store(store: FeatureStore, folder: Path) -> FeatureStore:
    """Copy a feature store; returns the copy."""
    shutil.copytree(store.folder, folder, dirs_exist_ok=True)
    return FeatureStore.open(folder)
