"""Twenty parts that arrive one by one against all images at once: `python -m benchmarks.arriving`.

It needs real features: a folder of .npz files given by `--features`, or $TRANSDUCE_REFERENCE/data.
Writes results/arriving.json and .md.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks.record import Record, Row
from transduce import Anchored, Task
from transduce.methods.anchored.model import AnchoredModel

PARTS = 20
SETS = (
    "whurs19_RN50", "whurs19_ViT-B-32", "whurs19_GeoRSCLIP-ViT-B-32", "caltech101_62_ViT-B-32",
    "cars98_ViT-B-32", "imagenet400_ViT-B-32",
)  # fmt: skip
NOTE = f"""\
Accuracy (%) on real features, in random orders of the images (seeds 0, 1, ...; means). `at once`: \
all images labeled jointly. `arriving`: {PARTS} equal parts one by one, each labeled with what was \
learned of those before it (`Anchored.carry_on`) and never again. `alone`: each part by itself. \
The last half are the last {PARTS // 2} parts, which have a past to lean on. `late`: the images of \
one class drawn at random come in the last half only; `its recall` is that of this class, after it \
at once and alone. `said` is how often the first part with images of it was said to hold a class \
that was hardly there before, or whose images lie elsewhere."""


@dataclass(frozen=True)
class Features:
    """Images, truth and class embeddings of a set."""

    images: np.ndarray
    labels: np.ndarray
    texts: np.ndarray

    @classmethod
    @cache
    def read(cls, path: Path) -> "Features":
        """Read one .npz; prompts are averaged."""
        with np.load(path) as data:
            parts = ["image_"] if "image_features" in data else ["test_", "val_"]
            images = np.concatenate([data[f"{part}features"] for part in parts])
            names = ["labels"] if parts == ["image_"] else [f"{part}labels" for part in parts]
            labels = np.concatenate([data[name] for name in names])
            texts = data["text_features"].astype(np.float32)
        if texts.ndim == 3:
            texts = (texts / np.linalg.norm(texts, axis=2, keepdims=True)).mean(0)
        return cls(images.astype(np.float32), labels, texts)


def jointly(features: Features, rows: np.ndarray) -> tuple[np.ndarray, AnchoredModel]:
    """The labels of some images by themselves, and what was learned."""
    task = Task.from_embeddings(features.images[rows], features.texts, space="embedding")
    prediction = Anchored().predict(task)
    assert isinstance(prediction.model, AnchoredModel)
    return prediction.labels, prediction.model


def arriving(features: Features, order: np.ndarray, watched: int) -> tuple[np.ndarray, bool]:
    """The labels of images that come in parts, and whether a class was said to be new."""
    labels, model, said, seen = np.empty(len(order), np.int64), None, False, False
    for rows in np.array_split(order, PARTS):
        here = bool((features.labels[rows] == watched).any())
        if model is None:
            labels[rows], model = jointly(features, rows)
        else:
            answer = Anchored().carry_on(model, features.images[rows])
            labels[rows], model = answer.classes[:, 0], answer.model
            if here and not seen and answer.drift is not None:
                said = watched in answer.drift.appeared or watched in answer.drift.moved
        seen = seen or here
    return labels, said


def late_order(features: Features, order: np.ndarray, late: int) -> np.ndarray:
    """The order with all images of one class moved into its last half, at random places."""
    of_class = features.labels[order] == late
    others, half = order[~of_class], len(order) // 2
    rest = np.concatenate([others[half:], order[of_class]])
    return np.concatenate([others[:half], np.random.default_rng(late).permutation(rest)])


def measure(path: Path, seed: int) -> Row:
    """One order of one set."""
    features, random = Features.read(path), np.random.default_rng(seed)
    order = random.permutation(len(features.labels))
    late = int(random.choice(np.unique(features.labels)))
    parts = np.array_split(order, PARTS)
    task = Task.from_embeddings(features.images, features.texts, space="embedding")
    alone = np.empty(len(order), np.int64)
    for rows in parts:
        alone[rows] = jointly(features, rows)[0]
    answers = {
        "zero-shot": task.zero_shot.argmax(1),
        "at once": jointly(features, np.arange(len(order)))[0],
        "alone": alone,
        "arriving": arriving(features, order, late)[0],
    }
    answers["late"], said = arriving(features, late_order(features, order, late), late)
    half, of_late = np.concatenate(parts[PARTS // 2 :]), features.labels == late
    row: Row = {"late class": late, "images": len(order), "said": said}
    for name, labels in answers.items():
        right = 100.0 * (labels == features.labels)
        row[name] = float(right.mean())
        row[f"{name}, last half"] = float(right[half].mean())
        row[f"{name}, late class"] = float(right[of_late].mean())
    return row


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure again what is recorded")
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--features", type=Path, help="folder of the .npz files")
    chosen = parser.parse_args(arguments)
    folder = chosen.features or Path(os.environ.get("TRANSDUCE_REFERENCE", "")) / "data"
    record = Record("arriving", "python -m benchmarks.arriving", NOTE, fresh=chosen.fresh)
    for name in SETS:
        if not (folder / f"{name}.npz").is_file():
            print(f"no {name}.npz in {folder}, left out")
            continue
        for seed in range(chosen.orders):
            key = {"set": name, "parts": PARTS, "seed": seed}
            print(record.add(key, partial(measure, folder / f"{name}.npz", seed)), flush=True)
    names = list(dict.fromkeys(str(row["set"]) for row in record.rows))
    lines = [_mean([row for row in record.rows if row["set"] == name]) for name in names]

    def percent(name: str) -> Callable[[Row], str]:
        return lambda row: f"{float(str(row[name])):.1f}"

    columns: dict[str, Callable[[Row], str]] = {
        "set": lambda row: str(row["set"]),
        "images": lambda row: f"{row['images']:,}",
        "orders": lambda row: str(row["orders"]),
        **{name: percent(name) for name in ("zero-shot", "alone", "arriving", "at once")},
        "last half: alone": percent("alone, last half"),
        "arriving ": percent("arriving, last half"),
        "at once ": percent("at once, last half"),
        "late": percent("late"),
        "its recall": percent("late, late class"),
        "(at once)": percent("at once, late class"),
        "(alone)": percent("alone, late class"),
        "said": lambda row: f"{row['said']:.0%}",
    }
    print(record.write_table(f"{PARTS} parts one by one", columns, lines))


def _mean(rows: list[Row]) -> Row:
    numbers = {
        name: float(np.mean([float(str(row[name])) for row in rows]))
        for name, value in rows[0].items()
        if isinstance(value, float)
    }
    said = float(np.mean([bool(row["said"]) for row in rows]))
    first = {"set": rows[0]["set"], "images": rows[0]["images"], "orders": len(rows)}
    return {**numbers, **first, "said": said}


if __name__ == "__main__":
    main()
