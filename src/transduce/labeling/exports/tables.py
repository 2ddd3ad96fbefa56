"""Plain tables: CSV and parquet with the columns of the run's own, and JSON lines."""

import json
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int

from transduce.labeling.answers import AnsweredLabels
from transduce.labeling.files import labels_of, write_label_blocks, write_labels_csv
from transduce.machine.atomic import replace_file

CANDIDATES = 5


def export_csv(labels: AnsweredLabels, out: Path) -> str:
    """Write a row per image with the columns of labels.csv."""
    write_labels_csv(out, labels.table, labels.classes, labels.extra_columns())
    return f"{len(labels):,} rows"


def export_parquet(labels: AnsweredLabels, out: Path) -> str:
    """Write a row per image with the columns of labels.parquet, block by block."""
    blocks = labels.probability_blocks()
    write_label_blocks(out, labels.table, labels.classes, blocks, labels.extra_columns())
    return f"{len(labels):,} rows with the probabilities of {len(labels.classes):,} classes"


def export_jsonl(labels: AnsweredLabels, out: Path) -> str:
    """Write a line per image; `predictions` are the best classes as Hugging Face's pipelines give.

    Named metadata.jsonl in the folder of the images, it is the metadata of an `imagefolder`.
    """
    table, classes = labels.table, labels.classes.labels
    names, before = labels.names, labels_of(table.zero_shot_label, labels.classes)

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as file:
            for start, block in labels.probability_blocks():
                best = _best(block)
                scores = np.take_along_axis(block, best, 1).tolist()
                for row, (candidates, shares) in enumerate(
                    zip(best.tolist(), scores, strict=True), start
                ):
                    line = {
                        "file_name": table.file_name[row],
                        "label": names[row],
                        "score": round(float(table.score[row]), 6),
                        "margin": round(float(table.margin[row]), 6),
                        "doubt": round(float(table.doubt[row]), 6),
                        "zero_shot_label": before[row],
                        "needs_review": bool(table.needs_review[row]),
                        "reason": table.reason[row],
                        **labels.extra_of(row),
                        "predictions": [
                            {"score": round(share, 6), "label": classes[k]}
                            for k, share in zip(candidates, shares, strict=True)
                        ],
                    }
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")

    replace_file(out, write)
    return f"{len(labels):,} lines"


def _best(block: Float32[np.ndarray, "row class"]) -> Int[np.ndarray, "row candidate"]:
    """Return the likeliest classes of each row, the likeliest first."""
    most = min(CANDIDATES, block.shape[1])
    candidates = np.sort(np.argpartition(-block, most - 1, axis=1)[:, :most], axis=1)
    order = np.argsort(-np.take_along_axis(block, candidates, 1), axis=1, kind="stable")
    return np.take_along_axis(candidates, order, 1)
