"""Labels that are known beforehand: a truth to compare with, and folders named after classes."""

from collections.abc import Sequence

from transduce.encoders.class_names import ClassNames, readable
from transduce.errors import InvalidFile, UnknownName, some_of
from transduce.labeling.files import read_labeled
from transduce.labeling.settings import UNKNOWN, LabelSettings, indices_of

FOLDERS = "folders"  # as the truth: the names of the folders that images lie in
MOST_NAMED = 5  # folders in an error message


def read_truth(settings: LabelSettings, file_names: Sequence[str]) -> dict[str, int]:
    """Return the class index of each image in the file of --truth, refused if it has none."""
    if settings.truth == FOLDERS:
        return _truth_of_folders(settings, file_names)
    labels = read_labeled(settings.path(settings.truth))
    indices = indices_of([labels.get(name) for name in file_names], settings.names)
    truth = {
        name: int(index)
        for name, index in zip(file_names, indices, strict=True)
        if index != UNKNOWN
    }
    if not truth:
        raise InvalidFile(
            f"Expected the truth of these images in {settings.truth}, found none of their names "
            f"with one of the classes; its first line is {next(iter(labels.items()), 'missing')}, "
            f"the first image is {file_names[0]!r}."
        )
    return truth


def _truth_of_folders(settings: LabelSettings, file_names: Sequence[str]) -> dict[str, int]:
    """Return the class index of each image that lies in a folder of the name of a class."""
    indices = _spellings(settings.names)
    truth = {}
    for name in file_names:
        for folder in reversed(name.split("/")[:-1]):  # the nearest folder that is a class
            index = indices.get(folder, indices.get(readable(folder)))
            if index is not None:
                truth[name] = index
                break
    if not truth:
        folders = sorted({name.rpartition("/")[0] for name in file_names} - {""})
        found = some_of(folders, MOST_NAMED) if folders else "no sub-folders"
        raise InvalidFile(
            f"Expected sub-folders with the names of classes for --truth {FOLDERS}, found {found}; "
            "rename them, or give a CSV (file_name, label)."
        )
    return truth


def _spellings(classes: ClassNames) -> dict[str, int]:
    """Return the class of each way to write it: the label, readable or not, and its prompts."""
    indices = {readable(label): k for k, label in enumerate(classes.labels)}
    indices |= {name: k for k, names in enumerate(classes.alternatives) for name in names}
    return indices | {label: k for k, label in enumerate(classes.labels)}


def folder_labels(keys: Sequence[str], classes: ClassNames) -> dict[str, int]:
    """Return the class of each image by its first folder, spelled as the label or the prompt."""
    indices = _spellings(classes)
    labels = {}
    for key in keys:
        folder, slash, _ = key.partition("/")
        if not slash:
            raise InvalidFile(
                f"Expected the images of --support in a sub-folder for each class, found {key!r} "
                "beside them; move it into the folder of its class."
            )
        index = indices.get(folder, indices.get(readable(folder)))
        if index is None:
            raise UnknownName("class as the name of a folder of --support", folder, classes.labels)
        labels[key] = index
    return labels
