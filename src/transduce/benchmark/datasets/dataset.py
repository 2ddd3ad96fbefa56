"""A dataset that is on this machine: its classes, and its images split by split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.benchmark.datasets.card import CARDS, Card
from transduce.benchmark.datasets.layouts import (
    FOLDER_TEMPLATE,
    LAYOUTS,
    Contents,
    Sample,
    read_folders,
)
from transduce.encoders.class_names import ClassNames
from transduce.errors import MissingData
from transduce.images.entries import Listing, local_entry

FOLDER = "folder:"

__all__ = ["Dataset", "Sample", "load_card", "load_dataset"]


@dataclass(frozen=True)
class Dataset:
    """Classes, and `samples[split]`: images as paths below `root` with their class indices."""

    name: str
    root: Path
    template: str
    classes: tuple[str, ...]
    samples: Mapping[str, tuple[Sample, ...]]

    @property
    def class_names(self) -> ClassNames:
        """Class names for an encoder: underscores become spaces, as in the paper.

        Two classes of ImageNet may have one name; here a class is its number, so that is allowed.
        """
        prompts = tuple(" ".join(name.replace("_", " ").split()) for name in self.classes)
        return ClassNames(self.classes, prompts)

    def listing(self, splits: Sequence[str] | None = None) -> Listing:
        """Return the images of these splits (or all) as a source to embed, under their paths."""
        wanted = self.samples if splits is None else splits
        paths = sorted({sample.path for split in wanted for sample in self.samples[split]})
        return Listing(str(self.root), [local_entry(path, self.root / path) for path in paths])


def load_dataset(
    name: str, data: str | Path = "data", *, splits: Sequence[str] | None = None
) -> Dataset:
    """Return a dataset by its card, below the folder `data`, or `folder:PATH` of class folders.

    `splits` reads only these: ImageNet's test split does not need its 1.3 million others.
    """
    if name.startswith(FOLDER):
        return _load_folder(name, splits)
    return load_card(CARDS[name], Path(data), splits=splits)


def load_card(card: Card, data: Path, *, splits: Sequence[str] | None = None) -> Dataset:
    """Return the dataset of a card, below the folder `data`."""
    folder = data / card.folder
    if not folder.is_dir():
        raise missing_folder(card, data)
    contents = LAYOUTS[card.layout](folder, card, tuple(splits or card.counts))
    return _dataset(card.name, folder / card.images, card.template, contents)


def missing_folder(card: Card, data: Path) -> MissingData:
    """Return the error that says how to get a dataset."""
    return MissingData(
        f"Expected {card.title} in {data / card.folder}, found no such folder; get it with: "
        f"transduce data prepare {card.name} --data {data}"
    )


def _load_folder(name: str, splits: Sequence[str] | None) -> Dataset:
    root = Path(name.removeprefix(FOLDER)).expanduser()
    contents = read_folders(root)
    if splits is not None:
        missing = [split for split in splits if split not in contents.samples]
        if missing:
            raise MissingData(
                f"Expected a {missing[0]} split in {root}, found {', '.join(contents.samples)}; "
                f"make {root / missing[0]}/CLASS/ folders."
            )
        contents = Contents(contents.classes, {split: contents.samples[split] for split in splits})
    return _dataset(name, root, FOLDER_TEMPLATE, contents)


def _dataset(name: str, root: Path, template: str, contents: Contents) -> Dataset:
    return Dataset(name, root, template, contents.classes, contents.samples)
