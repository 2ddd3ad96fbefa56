"""Load labeled features by the name of a dataset and of an encoder.

Datasets are embedded once: the features of each split are kept as a store of their own in
FEATURES/ENCODER/DATASET/SPLIT, and a stopped embedding is resumed.
"""

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from transduce.benchmark.labeled_features import LabeledFeatures, Split, split_rows
from transduce.errors import InvalidSetting

REFERENCE = "TRANSDUCE_REFERENCE"
SPLIT_SEED = 0
TRAIN, VALIDATION = 0.4, 0.2  # of each class of a folder without splits; the rest is for test


@dataclass(frozen=True)
class DataFolders:
    """Where datasets are, and where their features go."""

    data: Path | None = None
    features: Path | None = None

    @property
    def features_folder(self) -> Path:
        """Folder of the features: as given, or below the data."""
        if self.features is not None:
            return self.features
        return Path("out/features") if self.data is None else self.data / "features"


def load_features(
    dataset: str,
    encoder: str,
    splits: Collection[str],
    folders: DataFolders,
    tell: Callable[[str], None] = lambda line: None,
) -> LabeledFeatures:
    """Return the features of a dataset by an encoder.

    Parameters
    ----------
    dataset : str
        `drawn:N`, `reference:NAME`, `folder:PATH`, or a dataset with a card below `folders.data`.
    encoder : str
        Name that `load_encoder` understands; for `reference:NAME`, that of its file.
    splits : collection of str
        Splits that are needed.
    folders : DataFolders
        Where datasets and features are.
    tell : callable
        Called with a line before images are embedded.
    """
    if dataset.startswith("reference:"):
        from transduce.benchmark.reference import read_reference

        return read_reference(_reference_folder(folders.data), dataset, encoder)
    if dataset.startswith("drawn:"):
        from transduce.benchmark.synthetic.drawn_features import draw_features
        from transduce.encoders import load_encoder

        return draw_features(dataset, load_encoder(encoder))
    return _embedded(dataset, encoder, splits, folders, tell)


def _reference_folder(data: Path | None) -> Path:
    folder = data or (Path(os.environ[REFERENCE]) if os.environ.get(REFERENCE) else None)
    if folder is None:
        raise InvalidSetting(
            f"Expected the folder of the reference features in --data or {REFERENCE}, found "
            "neither; name it."
        )
    return folder


def _embedded(
    name: str,
    encoder_name: str,
    splits: Collection[str],
    folders: DataFolders,
    tell: Callable[[str], None],
) -> LabeledFeatures:
    from transduce.benchmark.datasets import CARDS, load_dataset
    from transduce.benchmark.datasets.dataset import FOLDER
    from transduce.encoders import load_encoder
    from transduce.encoders.prompts import embed_classes
    from transduce.features.embedding import embed

    is_folder = name.startswith(FOLDER)
    if folders.data is None and not is_folder:
        raise InvalidSetting(f"Expected the folder of {name} in --data, found no --data.")
    # Only what is asked for and what the card has: ImageNet's `val` folder is its test split.
    wanted = None if is_folder else [split for split in CARDS[name].counts if split in splits]
    dataset = load_dataset(name, folders.data or ".", splits=wanted)
    encoder = load_encoder(encoder_name)
    texts = embed_classes(encoder, dataset.class_names, [dataset.template])
    base = folders.features_folder / _slug(encoder_name) / _slug(name)
    split_features: dict[str, Split] = {}
    for split in dataset.samples:
        images = dataset.listing([split])
        if not (base / split / "meta.json").exists():
            tell(f"Embedding {len(images.entries):,} {split} images of {name} into {base / split}")
        store = embed(images, encoder, out=base / split)
        part = replace(dataset, samples={split: dataset.samples[split]})
        split_features |= LabeledFeatures.from_store(store, part, texts).splits
    features = LabeledFeatures(name, encoder_name, dataset.classes, texts, split_features)
    return split_by_class(features) if is_folder and set(split_features) == {"test"} else features


def split_by_class(features: LabeledFeatures) -> LabeledFeatures:
    """Split images of a folder: 40 % of each class for shots, 20 % to validate, 40 % to test."""
    whole = features.split("test")

    def cuts(size: int) -> list[int]:
        return [round(TRAIN * size), round((TRAIN + VALIDATION) * size)]

    parts = split_rows(features.rows_by_class("test"), cuts, seed=SPLIT_SEED)
    splits = {name: Split(whole.embeddings[at], whole.labels[at]) for name, at in parts.items()}
    return replace(features, splits={"all": whole, **splits})


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
