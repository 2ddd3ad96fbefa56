"""Labeling at scale: time and memory of large batches, on one machine and on Ray.

`python -m benchmarks.scale [PART ...] [--fresh] [--folder DIR]` writes results/scale.json and
results/scale.md. Parts: `anchored` (N x 1000), `million`, `dirichlet`, `dirichlet million`,
`rivals` (50,000 x 1000), `classes` (K = 21,841), `loss` (what sparse assignments lose), `real` (the
same and neighbors from cells on the features of $TRANSDUCE_REFERENCE), `ray` (workers, some of them
killed), `resume` (a killed driver). Rows are measured in processes of their own. Embeddings are
simulated (benchmarks/planted.py) into shards of float16, which are mapped.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.record import Record, Row

CLASSES, MANY_CLASSES = 1000, 21_841
SIZES = (10_000, 50_000, 200_000)
MILLION = 1_000_000
REAL = ("imagenet400_ViT-B-32", "caltech101_62_ViT-B-32", "cars98_ViT-B-32")
RIVALS = ("anchored", "transclip", "stata")
PARTS = (
    "anchored",
    "million",
    "dirichlet",
    "dirichlet million",
    "rivals",
    "classes",
    "loss",
    "real",
    "ray",
    "resume",
)
SOLVED = ("anchored", "em-dirichlet", "hard-em-dirichlet")  # from disk, and on Ray
MODULES = {"ray": "scale_kills", "resume": "scale_kills"}
NOTE = """\
Simulated embeddings of 512 dimensions with planted classes (benchmarks/planted.py, seed 0), all \
classes present, in shards of float16; more than 131,072 images stay on disk, as in `transduce \
label`. Each row is a process of its own. products: the time over that of one float32 product \
X T' of all images with all classes, measured in the same process in blocks over the same \
threads, by the clock and by processor time (the steadier of the two where the machine had other \
work: see load). For EM-Dirichlet the unit is instead the products that it needs itself, in \
float32: N x K x K, for each iteration one for the densities and one for the statistics, and X T' \
in each pass that forms probabilities (one if they are kept); answering is in its time. Memory: \
the most that was resident beyond the process before it began, without mapped files. recall: the \
share of true neighbors among those found, on a sample."""


def measure(part: str, folder: Path, *arguments: object) -> Row:
    """Run a part in a process of its own; return what it printed."""
    module = f"benchmarks.{MODULES.get(part, 'scale_runs')}"
    words = [sys.executable, "-m", module, part, str(folder)]
    done = subprocess.run(
        [*words, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def rows_of(part: str) -> list[tuple[dict[str, object], tuple[object, ...]]]:
    """Key and arguments of each row of a part."""
    if part == "anchored":
        return [({"images": n, "classes": CLASSES}, (n, CLASSES)) for n in SIZES]
    if part == "million":
        return [({"images": MILLION, "classes": CLASSES}, (MILLION, CLASSES))]
    if part == "classes":
        return [({"images": 50_000, "classes": MANY_CLASSES}, (50_000, MANY_CLASSES))]
    if part == "dirichlet":
        return [({"images": n, "classes": CLASSES}, (n, CLASSES)) for n in SIZES]
    if part == "dirichlet million":
        return [({"images": MILLION, "classes": CLASSES}, (MILLION, CLASSES))]
    if part == "rivals":
        return [({"method": name, "images": 50_000, "classes": CLASSES},
                 (name, 50_000, CLASSES)) for name in RIVALS]  # fmt: skip
    if part == "real":
        return [({"set": name}, (name,)) for name in REAL]
    if part in ("ray", "resume"):
        return [({"method": name}, (name,)) for name in SOLVED]
    return [({}, ())]


def number(row: Row, name: str, form: str) -> str:
    """A cell, empty where the row has no such number."""
    return format(row[name], form) if row.get(name) is not None else ""


COLUMNS: dict[str, Callable[[Row], str]] = {
    "part": lambda row: str(row["part"]),
    "method": lambda row: str(row.get("method", row.get("set", ""))),
    "images": lambda row: number(row, "images", ","),
    "classes": lambda row: number(row, "classes", ","),
    "seconds": lambda row: number(row, "seconds", ".1f"),
    "products": lambda row: number(row, "products", ".1f"),
    "by processor time": lambda row: number(row, "products_cpu", ".1f"),
    "memory": lambda row: number(row, "megabytes", ",.0f") + (" MB" if "megabytes" in row else ""),
    "zero-shot": lambda row: number(row, "zero_shot", ".3f"),
    "accuracy": lambda row: number(row, "accuracy", ".3f"),
    "recall": lambda row: number(row, "recall", ".3f"),
    "said": lambda row: str(row.get("said", "")),
    "load": lambda row: str(row["load"]),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=f"of {', '.join(PARTS)}; all of them")
    parser.add_argument("--fresh", action="store_true", help="measure the parts again")
    parser.add_argument("--folder", type=Path, help="for the simulated features, up to 1 GB")
    chosen = parser.parse_args(arguments)
    record = Record("scale", "python -m benchmarks.scale", NOTE, fresh=False)
    parts = chosen.parts or list(PARTS)
    if chosen.fresh:
        record.rows[:] = [row for row in record.rows if row["part"] not in parts]
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        for part in parts:
            for key, words in rows_of(part):
                print(part, key, flush=True)
                record.add({"part": part, **key}, partial(measure, part, folder, *words))
    record.rows.sort(key=lambda row: (PARTS.index(str(row["part"])), int(str(row["images"]))))
    print(record.write_table("Labeling at scale", COLUMNS))


if __name__ == "__main__":
    main()
