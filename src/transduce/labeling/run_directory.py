"""The run directory: everything about one labeling run, for people and for programs.

    labels.csv         one row per image, in the order of the feature store: file_name, label,
                       score, margin, entropy, zero_shot_label, zero_shot_score, changed,
                       needs_review, reason, duplicate_of (labels are names or `unknown`; numbers
                       have 6 decimals; flags are true or false; nothing is an empty cell)
    labels.parquet     the same rows, columns with their types; besides image_path, distance
                       (float32), corrected (bool), truth (text or null, if there is a truth) and
                       probabilities (a list of K float32 in the order of classes.json)
    classes.json       format, version, labels, prompts, templates, temperature, encoder (its
                       identity: encoder, weights, preprocessing, dimension)
    run.toml           the settings; `transduce label --run run.toml` makes the same labels.csv
    summary.json       counts, how each batch was solved, warnings, the figures of --truth
    model.safetensors  class_embeddings (K, D); support_embeddings (S, D) and support_labels (S)
                       if there were shots (--support); of batch i of a mixture
                       batch_i.parameters, batch_i.log_prior, batch_i.class_of_cluster; metadata:
                       method, temperature
    skipped.csv        file_name, image_path, reason, detail of what could not be read
    report.html        the page to look at
    reviewed.csv       file_name, label: corrections, if there are any
    features/          the feature store, unless one was given (then run.toml names it)

The columns of labels.parquet are those of `table.LabelTable`, with names in the place of class
numbers. A run directory appears whole: it is written under a hidden name and then renamed. Runs
are numbered, so that none overwrites another.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Identity
from transduce.errors import InvalidRun
from transduce.features.layout import Skip
from transduce.features.store import FeatureStore
from transduce.labeling import files
from transduce.labeling.model import BatchModels
from transduce.labeling.settings import LabelSettings, read_settings
from transduce.labeling.summary import Summary
from transduce.labeling.table import LabelTable

LABELS_CSV = "labels.csv"
LABELS_PARQUET = "labels.parquet"
CLASSES = "classes.json"
RUN = "run.toml"
SUMMARY = "summary.json"
MODEL = "model.safetensors"
SKIPPED = "skipped.csv"
REPORT = "report.html"
REVIEWED = "reviewed.csv"
FEATURES = "features"


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A finished run. Open it with `RunDirectory.load(folder)`."""

    folder: Path
    settings: LabelSettings
    classes: ClassNames
    identity: Identity  # of the encoder
    labels: LabelTable
    summary: Summary

    @classmethod
    def load(cls, folder: str | Path) -> "RunDirectory":
        folder = Path(folder)
        if not (folder / SUMMARY).is_file():
            what = "no such folder" if not folder.is_dir() else f"no {SUMMARY} in it"
            raise InvalidRun(
                f"Expected a run directory at {folder}, found {what}; give one that "
                "transduce label wrote, such as out/transduce-001."
            )
        settings = read_settings(folder / RUN)
        try:
            described = json.loads((folder / CLASSES).read_text(encoding="utf-8"))
            classes = ClassNames(tuple(described["labels"]), tuple(described["prompts"]))
            summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
            return cls(
                folder=folder,
                settings=settings,
                classes=classes,
                identity=Identity(**described["encoder"]),
                labels=files.read_table(folder / LABELS_PARQUET, classes),
                summary=Summary.from_json(summary),
            )
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InvalidRun(
                f"Expected a whole run directory at {folder}, found {type(error).__name__}: "
                f"{error}; make it again: transduce label --run {folder / RUN}"
            ) from error

    def probabilities(self) -> Float32[np.ndarray, "image class"]:
        """The probability of every class for every image, read from labels.parquet."""
        return files.read_probabilities(self.folder / LABELS_PARQUET)

    def store(self) -> FeatureStore:
        """The embeddings of the images, in the order of the labels."""
        given = self.settings.features
        return FeatureStore.open(self.settings.path(given) if given else self.folder / FEATURES)

    def model(self) -> BatchModels:
        return BatchModels.read(self.folder / MODEL)

    def skipped(self) -> list[Skip]:
        return files.read_skipped(self.folder / SKIPPED)

    def corrections(self) -> dict[str, str]:
        """What `reviewed.csv` says: file name to label (or `unknown`); empty without it."""
        return files.read_corrections(self.folder / REVIEWED)


def new_run_folder(out: Path) -> Path:
    """The next free `out/transduce-NNN`, reserved by making it under its hidden name."""
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
    """Where a run is written until it is whole."""
    return folder.with_name(f".{folder.name}")


def copy_run(run: RunDirectory, out: Path) -> Path:
    """A copy of the whole run at the next free place in `out`."""
    folder = new_run_folder(out)
    shutil.copytree(run.folder, hidden_name(folder), dirs_exist_ok=True)
    hidden_name(folder).rename(folder)
    return folder
