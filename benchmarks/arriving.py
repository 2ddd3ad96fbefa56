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
from transduce.methods.anchored.past import Past

PARTS = 20
SETS = (
    "whurs19_RN50", "whurs19_ViT-B-32", "whurs19_GeoRSCLIP-ViT-B-32", "caltech101_62_ViT-B-32",
    "cars98_ViT-B-32", "imagenet400_ViT-B-32",
)  # fmt: skip
LATE = {"late": "arriving", "late, sums": "sums"}
REMEMBERED = {"arriving": 2048, "256 kept": 256, "sums": 0}
MORE_COMMON = 3.0  # times: a class that is said to appear does so if it is that much more common
NOTE = f"""\
Accuracy (%) on real features, in random orders of the images (seeds 0, 1, ...; means). `at once`: \
all images labeled jointly. `arriving`: {PARTS} equal parts one by one, each labeled with what was \
learned of those before it (`Anchored.carry_on`) and never again; `256 kept`: with 256 remembered \
images instead of 2,048, so that most are sums; `sums`: with none. `alone`: each part by itself. \
The last half are the last {PARTS // 2} parts, which have a past to lean on. `renewed`: the \
remembered images as they were labeled when they came, and as they would be at the end. \
`late`: the images of one class drawn at random come in the last half only; `its recall` is that \
of this class, after it with sums alone, at once, and each part alone. `said` is how often the \
first part with images of it was said to hold a class that appears, `images` how many of them it \
held. `false`: the share of classes said to appear, in any part of both orders, that were not \
truly {MORE_COMMON:.0f} times as common as before; `parts`: the share of parts with such an \
alarm."""


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


def jointly(
    features: Features, rows: np.ndarray, method: Anchored
) -> tuple[np.ndarray, AnchoredModel]:
    """The labels of some images by themselves, and what was learned."""
    task = Task.from_embeddings(features.images[rows], features.texts, space="embedding")
    prediction = method.predict(task)
    assert isinstance(prediction.model, AnchoredModel)
    return prediction.labels, prediction.model


@dataclass
class Said:
    """What was said of classes that appear, over the parts of an order."""

    first: bool = False  # of the watched class, when it first came
    first_images: int = 0
    rightly: int = 0
    wrongly: int = 0
    parts: int = 0
    parts_wrong: int = 0

    def hear(self, appeared: set[int], here: np.ndarray, before: np.ndarray, watched: int) -> None:
        """Compare what is said of a part with the truth, as counts of classes."""
        if not before[watched] and here[watched]:
            self.first, self.first_images = watched in appeared, int(here[watched])
        grown = here * before.sum() > MORE_COMMON * here.sum() * (before + 0.5)
        wrong = sum(not grown[k] for k in appeared)
        self.rightly += len(appeared) - wrong
        self.wrongly += wrong
        self.parts += 1
        self.parts_wrong += wrong > 0


def arriving(
    features: Features, order: np.ndarray, watched: int, remembered: int
) -> tuple[np.ndarray, Said, Past]:
    """The labels of images that come in parts, what was said, and what is left behind."""
    labels, model, said = np.empty(len(order), np.int64), None, Said()
    method, before = Anchored(remembered=remembered), np.zeros(len(features.texts), np.int64)
    for rows in np.array_split(order, PARTS):
        here = np.bincount(features.labels[rows], minlength=len(before))
        if model is None:
            labels[rows], model = jointly(features, rows, method)
        else:
            answer = method.carry_on(model, features.images[rows])
            labels[rows], model = answer.classes[:, 0], answer.model
            assert answer.drift is not None
            said.hear({*answer.drift.appeared, *answer.drift.moved}, here, before, watched)
        before += here
    assert model is not None
    assert model.past is not None
    return labels, said, model.past


def renewed(features: Features, past: Past) -> tuple[float, float]:
    """Accuracy (%) of the remembered images, as they were labeled and as they would be now."""
    unit = features.images / np.linalg.norm(features.images, axis=1, keepdims=True)
    found = past.memory.find(unit.astype(np.float32))
    truth, held = features.labels[found >= 0], found[found >= 0]
    written, now = past.memory.written[held], past.memory.labels[held]
    return 100.0 * float((written == truth).mean()), 100.0 * float((now == truth).mean())


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
        alone[rows] = jointly(features, rows, Anchored())[0]
    found = {name: arriving(features, order, late, kept) for name, kept in REMEMBERED.items()}
    moved = late_order(features, order, late)
    lately = {name: arriving(features, moved, late, REMEMBERED[name]) for name in LATE.values()}
    answers = {
        "zero-shot": task.zero_shot.argmax(1),
        "at once": jointly(features, np.arange(len(order)), Anchored())[0],
        "alone": alone,
        **{name: labels for name, (labels, _, _) in found.items()},
        **{name: lately[kept][0] for name, kept in LATE.items()},
    }
    half, of_late = np.concatenate(parts[PARTS // 2 :]), features.labels == late
    heard, new = found["arriving"][1], lately["arriving"][1]
    row: Row = {
        "late class": late,
        "images": len(order),
        "said": new.first,
        "first images": float(new.first_images),
        "rightly said": heard.rightly + new.rightly,
        "wrongly said": heard.wrongly + new.wrongly,
        "parts heard": heard.parts + new.parts,
        "parts wrong": heard.parts_wrong + new.parts_wrong,
    }
    row["as written"], row["renewed"] = renewed(features, found["arriving"][2])
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
    missing = [name for name in SETS if not (folder / f"{name}.npz").is_file()]
    if missing:
        print(f"not in {folder}, left out: {', '.join(missing)}")
    names = [name for name in SETS if name not in missing]
    for seed in range(chosen.orders):  # of all sets, so that what is stopped is of all
        for name in names:
            key = {"set": name, "parts": PARTS, "seed": seed}
            print(record.add(key, partial(measure, folder / f"{name}.npz", seed)), flush=True)
    names = [name for name in SETS if any(row["set"] == name for row in record.rows)]
    lines = [_mean([row for row in record.rows if row["set"] == name]) for name in names]

    def percent(name: str) -> Callable[[Row], str]:
        return lambda row: f"{float(str(row[name])):.1f}"

    columns: dict[str, Callable[[Row], str]] = {
        "set": lambda row: str(row["set"]),
        "images": lambda row: f"{row['images']:,}",
        "orders": lambda row: str(row["orders"]),
        **{name: percent(name) for name in ("zero-shot", "alone", "sums", "256 kept")},
        **{name: percent(name) for name in ("arriving", "at once")},
        "last half: alone": percent("alone, last half"),
        "sums ": percent("sums, last half"),
        "256 kept ": percent("256 kept, last half"),
        "arriving ": percent("arriving, last half"),
        "at once ": percent("at once, last half"),
        "renewed": lambda row: f"{row['as written']:.1f} -> {row['renewed']:.1f}",
        "late": percent("late"),
        "its recall": percent("late, late class"),
        "(sums)": percent("late, sums, late class"),
        "(at once)": percent("at once, late class"),
        "(alone)": percent("alone, late class"),
        "said": lambda row: f"{row['said']:.0%}",
        "images ": lambda row: f"{row['first images']:.1f}",
        "false": lambda row: f"{row['wrongly said']} of {row['said at all']}",
        "parts": lambda row: f"{row['false alarms']:.0%}",
    }
    print(record.write_table(f"{PARTS} parts one by one", columns, lines))


def _mean(rows: list[Row]) -> Row:
    numbers = {
        name: float(np.mean([float(str(row[name])) for row in rows]))
        for name, value in rows[0].items()
        if isinstance(value, float)
    }

    def total(name: str) -> int:
        return sum(int(str(row[name])) for row in rows)

    return {
        **numbers,
        "set": rows[0]["set"],
        "images": rows[0]["images"],
        "orders": len(rows),
        "said": float(np.mean([bool(row["said"]) for row in rows])),
        "wrongly said": total("wrongly said"),
        "said at all": total("wrongly said") + total("rightly said"),
        "false alarms": total("parts wrong") / total("parts heard"),
    }


if __name__ == "__main__":
    main()
