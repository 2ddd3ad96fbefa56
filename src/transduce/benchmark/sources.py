"""From the name of a dataset and of an encoder to labelled features."""

import os
from pathlib import Path

from transduce.errors import InvalidSetting
from transduce.features.labelled import LabelledFeatures

REFERENCE = "TRANSDUCE_REFERENCE"


def load_features(dataset: str, encoder: str, data: Path | None) -> LabelledFeatures:
    """`drawn:N`, `reference:NAME`, or a dataset of the catalogue below `data`."""
    if dataset.startswith("reference:"):
        from transduce.benchmark.reference import read_reference

        return read_reference(_reference_folder(data), dataset, encoder)
    from transduce.encoders import load_encoder

    if dataset.startswith("drawn:"):
        from transduce.benchmark.drawn import draw_features

        return draw_features(dataset, load_encoder(encoder))
    raise NotImplementedError


def _reference_folder(data: Path | None) -> Path:
    folder = data or (Path(os.environ[REFERENCE]) if os.environ.get(REFERENCE) else None)
    if folder is None:
        raise InvalidSetting(
            f"Expected the folder of the reference features in --data or {REFERENCE}, found neither."
        )
    return folder
