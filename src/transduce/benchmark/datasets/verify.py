"""What of a dataset is here: at a glance, and file by file."""

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

State = Literal["present", "incomplete", "absent"]


@dataclass(frozen=True)
class Presence:
    """Which of the card's parts are in the data folder; no file of theirs was opened."""

    card: Card
    folder: Path
    missing: tuple[str, ...]

    @property
    def state(self) -> State:
        if not self.missing:
            return "present"
        return "absent" if len(self.missing) == len(self.card.needs) else "incomplete"


@dataclass(frozen=True)
class Verification:
    """How many images of each split are there, and what is wrong."""

    name: str
    root: Path
    classes: int
    counts: dict[str, int]
    problems: tuple[str, ...]


def look(card: Card, data: Path) -> Presence:
    folder = data / card.folder
    missing = tuple(part for part in card.needs if not (folder / part).exists())
    return Presence(card, folder, missing)


def verify(name: str, data: Path) -> Verification:
    """Read the splits of a dataset and ask for every file in them."""
    if name.startswith(FOLDER):
        dataset = load_dataset(name)
        problems = [*_file_problems(dataset), *_empty_classes(dataset)]
        counts = {split: len(samples) for split, samples in dataset.samples.items()}
        return Verification(
            name, dataset.root, len(dataset.classes), counts, tuple(dict.fromkeys(problems))
        )
    return _verify_card(CARDS[name], data)


def _verify_card(card: Card, data: Path) -> Verification:
    counts: dict[str, int] = {}
    classes, problems = 0, []
    root = data / card.folder / card.images
    if not (data / card.folder).is_dir():
        return Verification(card.name, root, 0, {}, (str(missing_folder(card, data)),))
    for split, expected in card.counts.items():
        try:
            dataset = load_card(card, data, splits=[split])
        except TransduceError as error:
            problems.append(str(error))  # it names the file; once is enough
            continue
        found = len(dataset.samples[split])
        counts[split], classes = found, len(dataset.classes)
        if found != expected:
            problems.append(f"{split}: Expected {expected:,} images, found {found:,}.")
        if classes != card.classes:
            problems.append(f"Expected {card.classes:,} classes, found {classes:,}.")
        problems += _file_problems(dataset)
    return Verification(card.name, root, classes, counts, tuple(dict.fromkeys(problems)))


def _file_problems(dataset: Dataset) -> list[str]:
    problems = []
    for split, samples in dataset.samples.items():
        problems += _told(split, samples, dataset.root)
    return problems


def _told(split: str, samples: Iterable[Sample], root: Path) -> list[str]:
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
        found = Counter(sample.label for sample in samples)
        without = [name for label, name in enumerate(dataset.classes) if not found[label]]
        if without:
            shown = ", ".join(without[:MOST_FILES_NAMED])
            problems.append(f"{split}: {len(without):,} classes without images, such as {shown}")
    return problems


def check_index(card: Card, path: Path) -> None:
    """Refuse a split file or class list that is not the card's, whatever its name."""
    if card.layout == "coop-json":
        samples = read_split_file(path, tuple(card.counts)).samples
        found = {split: len(rows) for split, rows in samples.items()}
        if found != dict(card.counts):
            raise InvalidDataset(
                f"Expected {_counted(card.counts)} in {path}, found {_counted(found)}."
            )
    else:
        lines = sum(bool(line.strip()) for line in read_text(path).splitlines())
        if lines != card.classes:
            raise InvalidDataset(f"Expected {card.classes:,} classes in {path}, found {lines:,}.")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {split}" for split, count in counts.items())
