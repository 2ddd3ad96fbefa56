"""Check which parts of a dataset are on this machine: at a glance, or file by file."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transduce.benchmark.datasets.card import CARDS, Card
from transduce.benchmark.datasets.dataset import (
    FOLDER,
    Dataset,
    load_card,
    load_dataset,
    missing_folder,
)
from transduce.benchmark.datasets.layouts import Sample, read_split_file, read_text
from transduce.errors import InvalidDataset, TransduceError

MOST_FILES_NAMED = 3

DatasetState = Literal["present", "incomplete", "absent"]


@dataclass(frozen=True)
class DatasetStatus:
    """Which of the card's parts are in the data folder; no file of theirs was opened."""

    card: Card
    folder: Path
    missing: tuple[str, ...]

    @property
    def state(self) -> DatasetState:
        """Whether all parts are there, some, or none."""
        if not self.missing:
            return "present"
        return "absent" if len(self.missing) == len(self.card.needs) else "incomplete"


@dataclass(frozen=True)
class DatasetCheck:
    """How many images of each split are there, and what is wrong."""

    name: str
    root: Path
    classes: int
    counts: dict[str, int]
    problems: tuple[str, ...]


def dataset_status(card: Card, data: Path) -> DatasetStatus:
    """Return which parts of the card are below the folder `data`."""
    folder = data / card.folder
    missing = tuple(part for part in card.needs if not (folder / part).exists())
    return DatasetStatus(card, folder, missing)


def verify_dataset(name: str, data: Path) -> DatasetCheck:
    """Read the splits of a dataset and look for every file in them."""
    if name.startswith(FOLDER):
        dataset = load_dataset(name)
        problems = [*_file_problems(dataset), *_empty_classes(dataset)]
        counts = {split: len(samples) for split, samples in dataset.samples.items()}
        return DatasetCheck(
            name, dataset.root, len(dataset.classes), counts, tuple(dict.fromkeys(problems))
        )
    return _verify_card(CARDS[name], data)


def _verify_card(card: Card, data: Path) -> DatasetCheck:
    counts: dict[str, int] = {}
    classes, problems = 0, []
    root = data / card.folder / card.images
    if not (data / card.folder).is_dir():
        return DatasetCheck(card.name, root, 0, {}, (str(missing_folder(card, data)),))
    for split, expected in card.counts.items():
        try:
            dataset = load_card(card, data, splits=[split])
        except TransduceError as error:
            problems.append(str(error))  # it names the file; once is enough
            continue
        counts[split], classes = len(dataset.samples[split]), len(dataset.classes)
        if counts[split] != expected:
            problems.append(f"{split}: Expected {expected:,} images, found {counts[split]:,}.")
        if classes != card.classes:
            problems.append(f"Expected {card.classes:,} classes, found {classes:,}.")
        problems += _file_problems(dataset)
    return DatasetCheck(card.name, root, classes, counts, tuple(dict.fromkeys(problems)))


def _file_problems(dataset: Dataset) -> list[str]:
    problems = []
    for split, samples in dataset.samples.items():
        problems += _split_problems(split, samples, dataset.root)
    return problems


def _split_problems(split: str, samples: Iterable[Sample], root: Path) -> list[str]:
    missing, empty = [], []
    for sample in samples:
        try:
            if (root / sample.path).stat().st_size == 0:
                empty.append(sample.path)
        except OSError:
            missing.append(sample.path)
    return [
        f"{split}: {len(paths):,} {what}, such as {', '.join(paths[:MOST_FILES_NAMED])} in {root}"
        for what, paths in (("images missing", missing), ("empty files", empty))
        if paths
    ]


def _empty_classes(dataset: Dataset) -> list[str]:
    problems = []
    for split, samples in dataset.samples.items():
        sizes = Counter(sample.label for sample in samples)
        without = [name for label, name in enumerate(dataset.classes) if not sizes[label]]
        if without:
            shown = ", ".join(without[:MOST_FILES_NAMED])
            problems.append(f"{split}: {len(without):,} classes without images, such as {shown}")
    return problems


def check_index(card: Card, path: Path) -> None:
    """Refuse a split file or class list that is not the card's, whatever its name."""
    if card.layout == "coop-json":
        samples = read_split_file(path, tuple(card.counts)).samples
        counts = {split: len(rows) for split, rows in samples.items()}
        if counts != dict(card.counts):
            raise InvalidDataset(
                f"Expected {_counted(card.counts)} in {path}, found {_counted(counts)}."
            )
    else:
        lines = sum(bool(line.strip()) for line in read_text(path).splitlines())
        if lines != card.classes:
            raise InvalidDataset(f"Expected {card.classes:,} classes in {path}, found {lines:,}.")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {split}" for split, count in counts.items())
