"""How long the export of a large run takes, and how much memory: `results/exports.json`.

The run is simulated: random probabilities, one image under all names. Each format is written by a
process of its own; the memory is its peak beyond what it takes to open the run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.labeling import _peak_megabytes
from benchmarks.record import Record, Row
from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import Identity
from transduce.labeling import files, run_directory
from transduce.labeling.answers import answered_labels
from transduce.labeling.exports import EXPORTERS
from transduce.labeling.run_directory import RunClasses, RunDirectory
from transduce.labeling.settings import LabelSettings, to_toml
from transduce.labeling.summary import Summary
from transduce.labeling.table import LabelTable
from transduce.machine.atomic import replace_json, replace_text

IMAGES, CLASSES = 200_000, 1000


def write_simulated_run(folder: Path, images: int, classes: int) -> None:
    """Write what an export reads of a run directory."""
    folder.mkdir(parents=True)
    picture = folder / "one.png"
    Image.new("RGB", (8, 8), "red").save(picture)
    names = tuple(f"class {number}" for number in range(classes))
    known = ClassNames(names, names)
    labels = np.empty(images, np.int64)

    def blocks() -> Iterator[tuple[int, np.ndarray]]:
        for start in range(0, images, files.ROWS_AT_A_TIME):
            yield start, _probabilities(start, min(files.ROWS_AT_A_TIME, images - start), classes)

    for start, block in blocks():
        labels[start : start + len(block)] = block.argmax(1)
    numbers = np.full(images, 0.5, np.float32)
    table = LabelTable(
        file_name=tuple(f"{number:07d}.png" for number in range(images)),
        image_path=(str(picture),) * images,
        label=labels,
        score=numbers,
        margin=numbers,
        entropy=numbers,
        doubt=numbers,
        zero_shot_label=labels,
        zero_shot_score=numbers,
        distance=numbers,
        strangeness=numbers,
        changed=np.zeros(images, bool),
        needs_review=labels % 10 == 0,
        reason=tuple("close call" if label % 10 == 0 else "" for label in labels),
        duplicate_of=("",) * images,
        corrected=np.zeros(images, bool),
    )
    files.write_label_blocks(folder / run_directory.LABELS_PARQUET, table, known, blocks())
    settings = LabelSettings(source=str(folder), classes=names, prompts=names)
    identity = Identity("simulated", "seed 0", "none", 512)
    described = RunClasses(labels=names, prompts=names, encoder=identity)
    replace_json(folder / run_directory.CLASSES, described)
    replace_text(folder / run_directory.RUN, to_toml(settings))
    summary = Summary(
        images=images,
        skipped=0,
        duplicates=0,
        method="anchored",
        choice="",
        classes_present=classes,
        estimated=True,
        changed=0,
        needs_review=int(table.needs_review.sum()),
        unknown=0,
        corrected=0,
        classes=(),
        batches=(),
    )
    replace_json(folder / run_directory.SUMMARY, summary)


def _probabilities(seed: int, rows: int, classes: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    block = random.random((rows, classes), dtype=np.float32) ** 40
    return block / block.sum(1, keepdims=True)


def measure_one(folder: Path, form: str, out: Path) -> None:
    """In a process of its own, so that its memory is its own; prints a line of JSON."""
    labels = answered_labels(RunDirectory.load(folder))
    before, start = _peak_megabytes(), time.perf_counter()
    EXPORTERS[form](labels, out)
    row = {
        "seconds": round(time.perf_counter() - start, 2),
        "megabytes_open": round(before),
        "megabytes_more": round(_peak_megabytes() - before),
    }
    print(json.dumps(row))


def measure(folder: Path, form: str) -> Row:
    """Return time and memory of one export."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        words = [sys.executable, "-m", "benchmarks.exports", "--one", str(folder), form]
        made = subprocess.run(
            [*words, f"{work}/out"], check=True, capture_output=True, text=True, timeout=900
        )
    return json.loads(made.stdout.splitlines()[-1])


def main(arguments: list[str]) -> None:
    """Measure every format that is not recorded yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--classes", type=int, default=CLASSES)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--one", nargs=3, metavar=("RUN", "FORMAT", "OUT"))
    options, _ = parser.parse_known_args(arguments)
    if options.one:
        measure_one(Path(options.one[0]), options.one[1], Path(options.one[2]))
        return
    note = (
        "Exports of a simulated run, each in a process of its own; memory beyond that of the "
        "opened run (labels of all images, no probabilities)."
    )
    record = Record("exports", "python -m benchmarks.exports", note, fresh=options.fresh)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "run"
        write_simulated_run(folder, options.images, options.classes)
        for form in EXPORTERS:
            key = {"format": form, "images": options.images, "classes": options.classes}
            print(record.add(key, lambda form=form: measure(folder, form)), flush=True)  # type: ignore[misc]
    columns = {
        "format": lambda row: str(row["format"]),
        "images x classes": lambda row: f"{row['images']:,} x {row['classes']:,}",
        "seconds": lambda row: f"{row['seconds']:.1f}",
        "MB, the run open": lambda row: f"{row['megabytes_open']:,}",
        "MB more": lambda row: f"{row['megabytes_more']:,}",
    }
    print(record.write_table("Exports", columns))


if __name__ == "__main__":
    main(sys.argv[1:])
