"""Read `reference:NAME`: CLIP features of real images in a folder beside the library.

`data/NAME_ENCODER.npz` below the folder holds unit or raw embeddings, labels and the embeddings of
class names, of several prompts or one. Sets without splits are split here: of each class, in an
order drawn with a fixed seed, 20 images for shots, 10 for validation, the others for test; of a
class with fewer than 50 images 40, 20 and 40 %. Caltech-101 keeps its validation and test images.
`all` is every image. `reference:NAME/16` keeps the classes with at least 16 validation images only;
`reference:NAME+distractors` adds class names that no image shows, from `distractors_ENCODER.npz`.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from transduce.benchmark.labeled_features import LabeledFeatures, Split, split_rows
from transduce.errors import InvalidFile, InvalidSetting
from transduce.validation import unit_rows

TRAIN, VALIDATION = 20, 10  # of each class
ENOUGH = 50  # images of a class to take as many from
DISTRACTORS = "+distractors"
SEED = 0


def read_reference(folder: Path, dataset: str, encoder: str) -> LabeledFeatures:
    """Return the features in `folder/data` of a dataset such as `reference:whurs19`."""
    name, _, least = dataset.removeprefix("reference:").partition("/")
    path = folder / "data" / f"{name.removesuffix(DISTRACTORS)}_{encoder}.npz"
    more = folder / "data" / f"distractors_{encoder}.npz"
    distracted = name.endswith(DISTRACTORS)
    if not path.is_file() or (distracted and not more.is_file()):
        raise InvalidFile(
            f"Expected the reference features {more if path.is_file() else path}, found no such "
            "file; name their folder with "
            "--data or the environment variable TRANSDUCE_REFERENCE."
        )
    try:
        arrays = _arrays(path)
        classes = tuple(str(name) for name in arrays["classes"])
        texts = _class_embeddings(arrays["text_features"])
        splits = _splits(arrays, len(classes))
        if distracted:
            others = _class_embeddings(_arrays(more)["text_features"])
            classes += tuple(f"distractor {number}" for number in range(len(others)))
            texts = np.concatenate([texts, others])
    except (KeyError, ValueError) as error:
        raise InvalidFile(f"Expected reference features in {path}, found: {error}.") from None
    features = LabeledFeatures(dataset, encoder, classes, texts, splits)
    return _with_enough(features, int(least)) if least else features


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as stored:  # refuses pickles
        return {key: stored[key] for key in stored.files}


def _class_embeddings(texts: np.ndarray) -> Float[np.ndarray, "class feature"]:
    """Return the direction of the mean over prompts, each of unit length."""
    if texts.ndim == 2:
        return unit_rows("text_features", texts)
    units = [unit_rows("text_features", of_prompt) for of_prompt in texts.astype(np.float64)]
    return unit_rows("text_features", np.mean(units, 0)).astype(np.float32)


def _splits(arrays: dict[str, np.ndarray], n_classes: int) -> dict[str, Split]:
    if "labels" in arrays:
        images, labels = arrays["image_features"], arrays["labels"]
        members = [np.flatnonzero(labels == label) for label in range(n_classes)]
        rows = split_rows(members, _cuts, seed=SEED)
    else:
        images = np.concatenate([arrays["test_features"], arrays["val_features"]])
        labels = np.concatenate([arrays["test_labels"], arrays["val_labels"]])
        test = len(arrays["test_labels"])
        rows = {"test": np.arange(test), "val": np.arange(test, len(labels))}
    rows["all"] = np.arange(len(labels))
    return {name: Split.of(images[at], labels[at], n_classes) for name, at in rows.items()}


def _cuts(size: int) -> list[int]:
    """Return where the images for shots and for validation end."""
    if size >= ENOUGH:
        return [TRAIN, TRAIN + VALIDATION]
    return [round(0.4 * size), round(0.6 * size)]


def _with_enough(features: LabeledFeatures, least: int) -> LabeledFeatures:
    """Return the features of the classes with at least so many validation images."""
    counts = np.bincount(features.split("val").labels, minlength=features.n_classes)
    kept = np.flatnonzero(counts >= least)
    if len(kept) < 2:
        raise InvalidSetting(
            f"Expected 2 classes of {features.name} with {least} validation images, found "
            f"{len(kept)}."
        )
    new_label = np.full(features.n_classes, -1)
    new_label[kept] = np.arange(len(kept))
    splits = {}
    for name, split in features.splits.items():
        rows = new_label[split.labels] >= 0
        labels = new_label[split.labels[rows]]
        splits[name] = Split.of(split.embeddings[rows], labels, len(kept))
    return LabeledFeatures(
        features.name,
        features.encoder,
        tuple(features.classes[label] for label in kept),
        features.class_embeddings[kept],
        splits,
    )
