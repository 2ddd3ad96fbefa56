"""A folder per class, as torchvision's ImageFolder and Hugging Face's `imagefolder` read it."""

import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from transduce.errors import InvalidRun
from transduce.images.entries import is_container
from transduce.labeling.files import labels_of
from transduce.labeling.run_directory import RunDirectory

Link = Literal["symlink", "hardlink", "copy"]
UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')  # in a file's name, on one system or another


def export_imagefolder(run: RunDirectory, out: Path, link: Link = "symlink") -> str:
    """Write out/class/image for every image, linked or copied; nothing is overwritten."""
    _refuse_unopenable(run)
    taken: set[Path] = set()
    folders = _folders(run)
    for row, source, label in _images(run):
        folder = out / folders[label]
        folder.mkdir(parents=True, exist_ok=True)
        _put(source, _free(folder, run.labels.file_name[row], taken), link)
    return f"{len(run.labels):,} images in {len(set(folders.values())):,} folders, by {link}"


def _images(run: RunDirectory) -> Iterator[tuple[int, Path, str]]:
    labels = labels_of(run.labels.label, run.classes)
    for row, (path, label) in enumerate(zip(run.labels.image_path, labels, strict=True)):
        yield row, Path(path), label


def _refuse_unopenable(run: RunDirectory) -> None:
    for path, name in zip(run.labels.image_path, run.labels.file_name, strict=True):
        if "://" in path or is_container(path) or not Path(path).is_file():
            raise InvalidRun(
                f"Expected every image as a file on this machine, found {name!r} at "
                f"{path or 'no known path'}; export to csv or parquet instead, or label the "
                "unpacked folder."
            )


def _folders(run: RunDirectory) -> dict[str, str]:
    """Return the folder of each label in use, no two alike."""
    folders: dict[str, str] = {}
    for label in sorted(set(labels_of(run.labels.label, run.classes))):
        name = safe_name(label)
        while name.casefold() in {other.casefold() for other in folders.values()}:
            name += "_"
        folders[label] = name
    return folders


def safe_name(text: str) -> str:
    """Return `text` without what a file system cannot hold, at most 100 characters."""
    name = UNSAFE.sub("_", unicodedata.normalize("NFC", text)).strip(" .")
    return name[:100] or "_"


def _free(folder: Path, file_name: str, taken: set[Path]) -> Path:
    """Return a free name for the image in the folder of its class: its path, flattened."""
    flat = safe_name(file_name.replace("/", "__").lstrip("."))
    suffix = Path(file_name).suffix
    stem = flat.removesuffix(suffix)
    target, number = folder / f"{stem}{suffix}", 2
    while target in taken:
        target, number = folder / f"{stem}-{number}{suffix}", number + 1
    taken.add(target)
    return target


def _put(source: Path, target: Path, link: Link) -> None:
    if link == "symlink":
        target.symlink_to(source)
    elif link == "hardlink":
        os.link(source, target)
    else:
        shutil.copyfile(source, target)
