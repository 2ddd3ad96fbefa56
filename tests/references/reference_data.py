"""Real CLIP features and the recorded answers of the paper's published code, if they are here.

The folder is named by the environment variable TRANSDUCE_REFERENCE; without it the tests that
need it are skipped and say so.
"""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

SETS = ("whurs19_RN50", "whurs19_ViT-B-32", "caltech101_62_ViT-B-32")


@dataclass(frozen=True)
class ReferenceData:
    images: np.ndarray  # (image, feature), unit rows
    labels: np.ndarray  # (image,)
    classes: np.ndarray  # (class, feature), unit rows
    golden: dict[str, np.ndarray]


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@cache
def load(name: str) -> ReferenceData:
    folder = os.environ.get("TRANSDUCE_REFERENCE")
    if not folder:
        pytest.skip("TRANSDUCE_REFERENCE is not set: no reference features here")
    data = Path(folder) / "data"
    with np.load(data / f"{name}.npz") as stored:
        text = _unit(stored["text_features"].astype(float))
        if "labels" in stored:
            images, labels = stored["image_features"], stored["labels"]
            text = _unit(text.mean(0))
        else:
            images = np.concatenate([stored["test_features"], stored["val_features"]])
            labels = np.concatenate([stored["test_labels"], stored["val_labels"]])
    with np.load(data / "golden" / f"{name}.npz") as stored:
        golden = dict(stored)
    return ReferenceData(_unit(images.astype(float)), labels, text, golden)
