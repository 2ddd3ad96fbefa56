"""The inputs of cleanlab.

labels.npy (whole numbers 0 to K - 1), pred_probs.npy (rows that sum to one) and, in the same order,
file_names.json; the numbers are indices of the names in classes.json. With a certificate,
certified.npy says which rows it vouches for; with sets of classes, sets.json has them.

    cleanlab.filter.find_label_issues(labels=labels, pred_probs=pred_probs)

cleanlab doubts given labels with the help of a model's probabilities: the labels are the answers
of people, else the truth where the run has one, else those of zero-shot. It wants every class to
have some label: those that have none are left out of both.
"""

from pathlib import Path

import numpy as np

from transduce.labeling.answers import AnsweredLabels
from transduce.labeling.settings import UNKNOWN
from transduce.machine.atomic import replace_array, replace_file, replace_json


def export_cleanlab(labels: AnsweredLabels, out: Path) -> str:
    """Write labels, probabilities, file names and classes into the folder `out`."""
    table = labels.table
    given = np.array(table.zero_shot_label if table.truth is None else table.truth)
    for row, index in labels.answers.items():
        given[row] = index
    rows = np.flatnonzero(given != UNKNOWN)
    used, indices = np.unique(given[rows], return_inverse=True)
    out.mkdir(parents=True, exist_ok=True)
    replace_array(out / "labels.npy", indices.astype(np.int64))
    replace_file(out / "pred_probs.npy", lambda path: _write_rows(path, labels, rows, used))
    replace_json(out / "file_names.json", [table.file_name[row] for row in rows])
    replace_json(out / "classes.json", [labels.classes.labels[k] for k in used])
    if labels.certified is not None:
        replace_array(out / "certified.npy", labels.certified[rows])
    if labels.sets is not None:
        replace_json(out / "sets.json", [labels.sets[row] for row in rows])
    what = "zero-shot's labels" if table.truth is None else "the truth"
    if labels.answers:
        what += f", {len(labels.answers):,} answered"
    return f"{len(rows):,} labels ({what}) and probabilities of {len(used):,} classes"


def _write_rows(path: Path, labels: AnsweredLabels, rows: np.ndarray, used: np.ndarray) -> None:
    """Write the probabilities of these rows and classes as .npy, block by block."""
    header = {"descr": "<f8", "fortran_order": False, "shape": (len(rows), len(used))}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start, block in labels.probability_blocks():
            first, last = np.searchsorted(rows, [start, start + len(block)])
            part = block[rows[first:last] - start][:, used].astype("<f8")
            # A row whose classes were all left out knows nothing of those that remain.
            part += np.finfo(np.float32).tiny
            part /= part.sum(1, keepdims=True)
            file.write(np.ascontiguousarray(part).data)
