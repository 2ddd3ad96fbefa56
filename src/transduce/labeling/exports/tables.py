"""Plain tables: the run's own labels.csv and labels.parquet, and JSON lines."""

import json
import shutil
from pathlib import Path

import numpy as np

from transduce.atomic import replace_file
from transduce.labeling.files import labels_of
from transduce.labeling.run_directory import LABELS_CSV, LABELS_PARQUET, RunDirectory

CANDIDATES = 5


def export_csv(run: RunDirectory, out: Path) -> str:
    """Copy labels.csv."""
    _copy(run.folder / LABELS_CSV, out)
    return f"{len(run.labels):,} rows"


def export_parquet(run: RunDirectory, out: Path) -> str:
    """Copy labels.parquet."""
    _copy(run.folder / LABELS_PARQUET, out)
    return f"{len(run.labels):,} rows with the probabilities of {len(run.classes):,} classes"


def export_jsonl(run: RunDirectory, out: Path) -> str:
    """Write a line per image; `predictions` are the best classes as Hugging Face's pipelines give.

    Named metadata.jsonl in the folder of the images, it is the metadata of an `imagefolder`.
    """
    table, probabilities = run.labels, run.probabilities()
    labels = labels_of(table.label, run.classes)
    before = labels_of(table.zero_shot_label, run.classes)

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as file:
            for row, name in enumerate(table.file_name):
                best = np.argsort(-probabilities[row], kind="stable")[:CANDIDATES]
                line = {
                    "file_name": name,
                    "label": labels[row],
                    "score": round(float(table.score[row]), 6),
                    "margin": round(float(table.margin[row]), 6),
                    "zero_shot_label": before[row],
                    "needs_review": bool(table.needs_review[row]),
                    "reason": table.reason[row],
                    "predictions": [
                        {
                            "score": round(float(probabilities[row, k]), 6),
                            "label": run.classes.labels[k],
                        }
                        for k in best
                    ],
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    replace_file(out, write)
    return f"{len(table):,} lines"


def _copy(source: Path, out: Path) -> None:
    def write(temporary: Path) -> None:
        shutil.copyfile(source, temporary)

    replace_file(out, write)
