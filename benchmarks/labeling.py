"""How long `transduce label` takes on many images, and how much memory: `results/labeling.json`.

Precomputed features are simulated: images around the directions of their classes, in a store such
as `transduce embed` writes. The embedding itself is another benchmark's business.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.record import Record, Row
from transduce.encoders.encoder import Identity
from transduce.encoders.precomputed import TEXTS, write_texts
from transduce.encoders.prompts import DEFAULT_TEMPLATE, sentences
from transduce.features.layout import Meta, Settings, Shard
from transduce.features.writing import Row as ImageRow
from transduce.features.writing import finish, write_shard
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.settings import LabelSettings
from transduce.labeling.solving.solve import memory_needed

DIMENSION, SHARD = 512, 10_000
WARM_UP = 5_000
SIZES, CLASSES, BATCHES = (10_000, 30_000, 100_000), 100, ("10000", "all")
SPREAD, NOISE = 0.02, 0.06  # how far apart classes are, and images of one class


def write_simulated(folder: Path, images: int, classes: int, seed: int) -> tuple[str, ...]:
    """A store of `images` of `classes`, and the embeddings of its sentences."""
    random = np.random.default_rng(seed)
    directions = random.normal(size=(classes, DIMENSION)) * SPREAD
    directions[:, 0] += 2.0
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    names = tuple(f"class {number}" for number in range(classes))
    shards: list[Shard] = []
    for start in range(0, images, SHARD):
        count = min(SHARD, images - start)
        rows = directions[random.integers(classes, size=count)]
        rows = rows + NOISE * random.normal(size=rows.shape)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        about = [ImageRow(f"{start + number:07d}.jpg", "") for number in range(count)]
        shards.append(write_shard(folder, len(shards), rows.astype(np.float16), about))
    identity = Identity("simulated", f"seed {seed}", "none", DIMENSION)
    finish(folder, Meta(identity, Settings(0, "unknown")), shards, [])
    write_texts(folder / TEXTS, sentences(names, DEFAULT_TEMPLATE), directions)
    return names


def measure_one(folder: Path, classes: int, batch: str) -> None:
    """In a process of its own, so that its memory is its own; prints a line of JSON."""
    names = tuple(f"class {number}" for number in range(classes))
    _warm_up(classes)
    before = _peak_megabytes()
    start = time.perf_counter()
    settings = LabelSettings(
        source="",
        classes=names,
        prompts=names,
        encoder="",
        features=str(folder),
        batch="all" if batch == "all" else int(batch),
    )
    with tempfile.TemporaryDirectory(dir=folder.parent) as out:
        run = run_labeling(settings, Path(out))
        seconds = time.perf_counter() - start
        summary = run.summary
    stages = dict(summary.seconds)
    row = {
        "classes": classes,
        "method": summary.method,
        "seconds": {**stages, "files": seconds - sum(stages.values()), "whole": seconds},
        "megabytes_estimated": round(memory_needed(summary.images, classes, settings) / 1e6),
        "megabytes_before": round(before),
        "megabytes_peak": round(_peak_megabytes()),
    }
    print(json.dumps(row))


def _warm_up(classes: int) -> None:
    """Label a small store first: libraries, kernels and buffers are there before we count."""
    with tempfile.TemporaryDirectory() as work:
        names = write_simulated(Path(work) / "store", WARM_UP, classes, seed=1)
        settings = LabelSettings(
            source="", classes=names, prompts=names, encoder="", features=f"{work}/store"
        )
        run_labeling(settings, Path(work) / "out")


def _peak_megabytes() -> float:
    """Of this program: the peak that `resource` tells is inherited from the parent's."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(store: Path, classes: int, batch: str) -> Row:
    """Return time and memory of labeling a store, in a process of its own."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.labeling",
        "--one",
        str(store),
        "--classes",
        str(classes),
        "--batch",
        batch,
    ]
    made = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(made.stdout.splitlines()[-1])


def _stage(*names: str) -> Callable[[Row], str]:
    def seconds(row: Row) -> str:
        spent = row["seconds"]
        assert isinstance(spent, dict)
        return f"{sum(spent[name] for name in names):.1f} s"

    return seconds


COLUMNS: dict[str, Callable[[Row], str]] = {
    "images": lambda row: f"{row['images']:,}",
    "solved": lambda row: "at once" if row["batch"] == "all" else f"{int(str(row['batch'])):,}",
    "method": lambda row: str(row["method"]),
    "classes and features opened": _stage("classes", "embedding"),
    "solving": _stage("solving"),
    "labels, files": _stage("files"),
    "whole": _stage("whole"),
    "estimate": lambda row: f"{row['megabytes_estimated']} MB",
    "memory above 5,000 images": lambda row: (
        f"{int(str(row['megabytes_peak'])) - int(str(row['megabytes_before'])):,} MB"
    ),
}
NOTE = (
    "Labeling precomputed features (simulated, 512 numbers an image, 100 classes), from the "
    "store to the run directory. Memory is how far its peak rises above "
    "that of labeling 5,000 images in the same process before; it contains pages of the mapped "
    "files, which the system may drop."
)


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--classes", type=int, default=CLASSES, help=argparse.SUPPRESS)
    parser.add_argument("--batch", default="all", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one:
        measure_one(chosen.one, chosen.classes, chosen.batch)
        return
    record = Record("labeling", "python -m benchmarks.labeling", NOTE, fresh=chosen.fresh)
    for images in SIZES:
        with tempfile.TemporaryDirectory(prefix="labeling-") as work:
            store = Path(work) / "store"
            write_simulated(store, images, CLASSES, seed=0)
            for batch in BATCHES:
                record.add(
                    {"images": images, "batch": batch}, partial(measure, store, CLASSES, batch)
                )
    print(record.write_table("Labeling many images", COLUMNS))


if __name__ == "__main__":
    main()
