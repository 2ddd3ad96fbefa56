"""Readers of dataset layouts: CoOp's split files, FGVC's lists, ImageNet's folders, folders.

Each reader returns the classes in order and the samples of the wanted splits, and refuses what
contradicts itself. Whether every image is there is checked by `verify`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from transduce.benchmark.datasets.card import SPLITS, Card
from transduce.catalogue import Catalogue
from transduce.encoders.prompts import DEFAULT_TEMPLATE
from transduce.errors import InvalidDataset, MissingData
from transduce.images.entries import is_hidden, is_image

FOLDER_TEMPLATE = DEFAULT_TEMPLATE


class Sample(NamedTuple):  # ImageNet has 1.3 million of them: the smallest thing that has names
    """An image as its path below the root of its dataset, and its class index."""

    path: str
    label: int


@dataclass(frozen=True)
class Contents:
    """Classes in order, and the samples of each split."""

    classes: tuple[str, ...]
    samples: Mapping[str, tuple[Sample, ...]]


Reader = Callable[[Path, Card, tuple[str, ...]], Contents]


def read_split_file(path: Path, splits: tuple[str, ...] = SPLITS) -> Contents:
    """Read CoOp's `split_zhou_*.json`: {"train": [[path, label, class name], ...], "val": ...}."""
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise InvalidDataset(
            f"Expected JSON in {path}, found: {error}; download it again."
        ) from None
    names: dict[int, str] = {}
    try:
        samples = {
            split: tuple(_sample(row, names, path) for row in rows) for split, rows in data.items()
        }
    except InvalidDataset:
        raise
    except (AttributeError, TypeError, ValueError):
        raise InvalidDataset(
            f'Expected {{"train": [[path, label, class name], ...], ...}} in {path}, found '
            "something else; download it again."
        ) from None
    missing = [split for split in splits if split not in samples]
    if missing or sorted(names) != list(range(len(names))):
        problem = f"no {missing[0]}" if missing else f"labels {sorted(names)[:5]} ..."
        raise InvalidDataset(
            f"Expected {', '.join(splits)} with labels from 0 without gaps in {path}, found "
            f"{problem}."
        )
    classes = tuple(names[label] for label in range(len(names)))
    return Contents(classes, {split: samples[split] for split in splits})


def _sample(row: Any, names: dict[int, str], where: Path) -> Sample:  # noqa: ANN401 (JSON)
    path, label, name = row
    if not isinstance(path, str) or type(label) is not int or not isinstance(name, str):
        raise TypeError
    if names.setdefault(label, name) != name:
        raise InvalidDataset(
            f"Expected one name for class {label} in {where}, found {names[label]!r} and {name!r}."
        )
    return Sample(_inside(path, where), label)


def _inside(path: str, where: Path) -> str:
    """Return the path; refuse one that leads out of the dataset's folder."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise InvalidDataset(
            f"Expected paths below the dataset's folder in {where}, found {path!r}; remove it."
        )
    return path


def _read_coop(folder: Path, card: Card, splits: tuple[str, ...]) -> Contents:
    return read_split_file(folder / card.index, splits)


def _read_fgvc(folder: Path, card: Card, splits: tuple[str, ...]) -> Contents:
    """Read `variants.txt`, the classes, and `images_variant_train.txt`, image and class a line."""
    classes = tuple(line.strip() for line in read_text(folder / card.index).splitlines() if line)
    number = {name: label for label, name in enumerate(classes)}
    samples = {}
    for split in splits:
        path = folder / f"images_variant_{split}.txt"
        rows = [line.strip().split(" ", 1) for line in read_text(path).splitlines() if line.strip()]
        wrong = next((row for row in rows if len(row) != 2 or row[1] not in number), None)
        if wrong is not None:
            raise InvalidDataset(
                f"Expected an image and one of {len(classes)} classes of {card.index} in each line "
                f"of {path}, found {' '.join(wrong)!r}."
            )
        samples[split] = tuple(
            Sample(_inside(f"{image}.jpg", path), number[name]) for image, name in rows
        )
    return Contents(classes, samples)


def _read_imagenet(folder: Path, card: Card, splits: tuple[str, ...]) -> Contents:
    """Read `classnames.txt`, a folder and a name a line; the test split is the folder `val`."""
    index = folder / card.index
    rows = [line.strip().split(" ", 1) for line in read_text(index).splitlines() if line.strip()]
    wrong = next((row for row in rows if len(row) != 2), None)
    if wrong is not None or not rows:
        raise InvalidDataset(
            f"Expected lines such as 'n01440764 tench' in {index}, found {wrong or 'none'}."
        )
    names = {row[0]: row[1] for row in sorted(rows)}
    samples = {}
    for split in splits:
        subfolder = "val" if split == "test" else split
        samples[split] = tuple(
            Sample(f"{subfolder}/{identifier}/{file}", label)
            for label, identifier in enumerate(names)
            for file in _images(folder / card.images / subfolder / identifier)
        )
    return Contents(tuple(names.values()), samples)


def read_folders(root: Path) -> Contents:
    """Read a folder for each class; or `train`, `val` and `test`, each with such sub-folders.

    A folder without splits is a test split: shots and queries can both be drawn from it.
    """
    if not root.is_dir():
        raise MissingData(f"Expected a folder of class folders at {root}, found none there.")
    inner = _folders(root)
    has_splits = bool(inner) and "test" in inner and set(inner) <= set(SPLITS)
    splits = [name for name in SPLITS if name in inner] if has_splits else [""]
    classes = sorted({name for split in splits for name in _folders(root / split)})
    if len(classes) < 2:
        raise InvalidDataset(
            f"Expected at least 2 class folders in {root}, found {', '.join(classes) or 'none'}; "
            "put the images of each class into a folder of its name."
        )
    samples = {
        split or "test": tuple(
            Sample(f"{split}/{name}/{file}".removeprefix("/"), label)
            for label, name in enumerate(classes)
            for file in _images(root / split / name, needed=not split)
        )
        for split in splits
    }
    return Contents(tuple(classes), samples)


def _folders(root: Path) -> list[str]:
    return sorted(p.name for p in root.iterdir() if p.is_dir() and not is_hidden(p.name))


def _images(folder: Path, *, needed: bool = True) -> list[str]:
    """Return the images in a folder and below it, as paths from there."""
    if not folder.is_dir():
        if needed:
            raise MissingData(f"Expected the images of a class in {folder}, found no folder.")
        return []
    files = (path.relative_to(folder) for path in folder.rglob("*") if is_image(path.name))
    return sorted(file.as_posix() for file in files if not any(map(is_hidden, file.parts)))


def read_text(path: Path) -> str:
    """Return the text of a file that a dataset needs."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingData(f"Expected {path}, found no such file.") from None
    except UnicodeDecodeError as error:
        raise InvalidDataset(f"Expected text in {path}, found {error}.") from None


LAYOUTS: Catalogue[Reader] = Catalogue(
    "layout",
    {"coop-json": _read_coop, "fgvc-lists": _read_fgvc, "imagenet-folders": _read_imagenet},
)
