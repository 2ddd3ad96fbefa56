"""The inputs of cleanlab.

labels.npy (whole numbers 0 to K - 1), pred_probs.npy (rows that sum to one) and, in the same order,
file_names.json; the numbers are indices of the names in classes.json.

    cleanlab.filter.find_label_issues(labels=labels, pred_probs=pred_probs)

cleanlab doubts given labels with the help of a model's probabilities: the labels are the truth
where the run has one, and else those of zero-shot. It wants every class to have some label: those
that have none are left out of both.
"""

from pathlib import Path

import numpy as np

from transduce.atomic import replace_array, replace_json
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN


def export_cleanlab(run: RunDirectory, out: Path) -> str:
    """Write labels, probabilities, file names and classes into the folder `out`."""
    table = run.labels
    given = table.zero_shot_label if table.truth is None else table.truth
    rows = np.flatnonzero(given != UNKNOWN)
    used, labels = np.unique(given[rows], return_inverse=True)
    probabilities = run.probabilities()[np.ix_(rows, used)].astype(np.float64)
    # A row whose classes were all left out knows nothing of those that remain.
    probabilities += np.finfo(np.float32).tiny
    probabilities /= probabilities.sum(1, keepdims=True)
    out.mkdir(parents=True, exist_ok=True)
    replace_array(out / "labels.npy", labels.astype(np.int64))
    replace_array(out / "pred_probs.npy", probabilities)
    replace_json(out / "file_names.json", [table.file_name[row] for row in rows])
    replace_json(out / "classes.json", [run.classes.labels[k] for k in used])
    what = "zero-shot's labels" if table.truth is None else "the truth"
    return f"{len(rows):,} labels ({what}) and probabilities of {len(used):,} classes"
