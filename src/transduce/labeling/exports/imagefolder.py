"""A folder per class, as torchvision's ImageFolder and Hugging Face's `imagefolder` read it."""

import os
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Literal

from transduce.errors import InvalidRun
from transduce.images.entries import is_container
from transduce.labeling.answers import AnsweredLabels
from transduce.labeling.files import extra_cells
from transduce.machine.atomic import replace_csv

Link = Literal["symlink", "hardlink", "copy"]
UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')  # in a file's name, on one system or another


def export_imagefolder(labels: AnsweredLabels, out: Path, link: Link = "symlink") -> str:
    """Write out/class/image for every image, linked or copied; nothing is overwritten.

    With a certificate, out/certified.csv says of each image whether it is vouched for; with sets
    of classes, out/classes.csv has them.
    """
    refuse_unopenable(labels)
    taken: set[Path] = set()
    names = labels.names
    folders = _folders(names)
    targets = []
    for row, name in enumerate(names):
        folder = out / folders[name]
        folder.mkdir(parents=True, exist_ok=True)
        targets.append(_free(folder, labels.table.file_name[row], taken))
        _put(Path(labels.table.image_path[row]), targets[-1], link)
    for column, values in labels.extra_columns().items():
        cells = extra_cells(values)
        paths = [target.relative_to(out).as_posix() for target in targets]
        replace_csv(out / f"{column}.csv", ("file_name", column), zip(paths, cells, strict=True))
    return f"{len(labels):,} images in {len(set(folders.values())):,} folders, by {link}"


def refuse_unopenable(labels: AnsweredLabels) -> None:
    """Refuse labels of images that are no files on this machine."""
    table = labels.table
    for path, name in zip(table.image_path, table.file_name, strict=True):
        if "://" in path or is_container(path) or not Path(path).is_file():
            raise InvalidRun(
                f"Expected every image as a file on this machine, found {name!r} at "
                f"{path or 'no known path'}; export to csv or parquet instead, or label the "
                "unpacked folder."
            )


def _folders(names: list[str]) -> dict[str, str]:
    """Return the folder of each label in use, no two alike."""
    folders: dict[str, str] = {}
    for label in sorted(set(names)):
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
