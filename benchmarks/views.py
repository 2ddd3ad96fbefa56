"""What a second view gains: names from one encoder, images compared by another.

The folder of the features is named by TRANSDUCE_REFERENCE. WHU-RS19 has the same 1,005 images
under five encoders, so that every pair can be measured, by `anchored`, on the same batches.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int

from benchmarks.record import Record, Row
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.benchmark.reference import read_reference
from transduce.methods.anchored import Anchored
from transduce.task import Task
from transduce.validation import unit_rows

ENCODERS = (
    "RN50",
    "ViT-B-32",
    "GeoRSCLIP-ViT-B-32",
    "SkyCLIP-ViT-B-32",
    "RemoteCLIP-ViT-L-14",
)
# Regime -> batches, images, fewest and most classes present; 0 images: drawn another way.
REGIMES = {
    "75 of 3-10 classes": (20, 75, 3, 10),
    "64 of 5-25": (20, 64, 5, 25),
    "long tail": (6, 0, 0, 0),
    "whole": (1, 0, 0, 0),
}
TAIL = 0.1  # concentration of the Dirichlet distribution of class shares
LARGEST = 1000  # images of a batch with a long tail

Rows = Int[np.ndarray, " image"]


def batches(labels: Rows, regime: str) -> Iterator[Rows]:
    """Rows of the batches of a regime: the same for every pair of encoders."""
    n_classes = int(labels.max()) + 1
    if regime == "whole":
        yield np.arange(len(labels))
        return
    count, images, fewest, most = REGIMES[regime]
    random = np.random.default_rng([0, list(REGIMES).index(regime)])
    members = [np.flatnonzero(labels == label) for label in range(n_classes)]
    for _ in range(count):
        if regime == "long tail":
            shares = random.dirichlet(np.full(n_classes, TAIL))
            sizes = random.multinomial(min(LARGEST, len(labels)), shares)
            drawn = [
                random.choice(rows, min(int(size), len(rows)), replace=False)
                for rows, size in zip(members, sizes, strict=True)
            ]
            yield np.sort(np.concatenate(drawn))
            continue
        present = random.integers(fewest, min(most, n_classes) + 1)
        chosen = random.choice(n_classes, present, replace=False)
        rows = np.concatenate([members[label] for label in chosen])
        yield np.sort(random.choice(rows, min(images, len(rows)), replace=False))


def view_of(
    names: LabeledFeatures, eyes: LabeledFeatures, form: str
) -> Float32[np.ndarray, "image feature"] | None:
    """The rows that images are compared by: of the second encoder, or of both side by side."""
    if eyes is names:
        return None
    first, second = (
        unit_rows("features", features.split("all").embeddings) for features in (names, eyes)
    )
    if form == "alone":
        return second
    return np.concatenate([first, second], axis=1) / np.float32(np.sqrt(2.0))


def measure(names: LabeledFeatures, eyes: LabeledFeatures, form: str, regime: str) -> Row:
    """Return mean accuracies in percent of zero-shot and of `anchored` with this view."""
    images, labels = names.split("all").embeddings, names.split("all").labels
    view = view_of(names, eyes, form)
    own, joint = [], []
    for rows in batches(labels, regime):
        task = Task.from_embeddings(
            images[rows],
            names.class_embeddings,
            view=None if view is None else view[rows],
            space="embedding",
        )
        own.append((task.zero_shot.argmax(1) == labels[rows]).mean())
        joint.append((Anchored().predict(task).labels == labels[rows]).mean())
    return {
        "zero-shot": 100.0 * float(np.mean(own)),
        "anchored": 100.0 * float(np.mean(joint)),
        "batches": len(joint),
    }


NOTE = (
    "Accuracy in percent of `anchored` on WHU-RS19 (1,005 aerial images, 19 classes): names from "
    "one encoder, images compared by another. `alone`: by the second encoder; `beside`: by both "
    "side by side, each scaled by 1/sqrt 2; `-`: one encoder for both. Means over 20 batches of "
    "75 images, 20 of 64, 6 with a long tail, and the whole set; batches are the same in every "
    "row of a regime, and nothing was tuned on them."
)


def table(rows: list[Row]) -> list[Row]:
    """Return a row for each pair and form, the regimes as columns."""
    pairs: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = (row["names"], row["eyes"], row["form"])
        line = pairs.setdefault(key, {"names": key[0], "eyes": key[1], "form": key[2]})
        line[str(row["regime"])] = row["anchored"]
        line[f"zero-shot {row['regime']}"] = row["zero-shot"]
    return list(pairs.values())


def _cell(regime: str) -> Callable[[Row], str]:
    return lambda row: f"{row[regime]:.1f} ({row[f'zero-shot {regime}']:.1f})"


COLUMNS: dict[str, Callable[[Row], str]] = {
    "names from": lambda row: str(row["names"]),
    "eyes": lambda row: "-" if row["form"] == "-" else str(row["eyes"]),
    "form": lambda row: str(row["form"]),
    **{f"{regime} (zero-shot)": _cell(regime) for regime in REGIMES},
}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    chosen = parser.parse_args(arguments)
    record = Record("views", "python -m benchmarks.views", NOTE, fresh=chosen.fresh)
    folder = os.environ.get("TRANSDUCE_REFERENCE")
    if not folder:
        parser.error("expected the folder of the reference features in TRANSDUCE_REFERENCE")
    features = {name: read_reference(Path(folder), "whurs19", name) for name in ENCODERS}
    for names in ENCODERS:
        for eyes in ENCODERS:
            for form in ("-",) if eyes == names else ("alone", "beside"):
                for regime in REGIMES:
                    key = {"names": names, "eyes": eyes, "form": form, "regime": regime}
                    record.add(key, partial(measure, features[names], features[eyes], form, regime))
    print(record.write_table("A second view", COLUMNS, table(record.rows)))


if __name__ == "__main__":
    main()
