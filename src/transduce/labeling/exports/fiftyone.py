"""FiftyOne's FiftyOneImageClassificationDataset.

labels.json has the classes, and the label (an index of them), confidence and attributes of each
image by its absolute path; the folder data is empty, but FiftyOne wants to see it.

    fiftyone.Dataset.from_dir(OUT, fiftyone.types.FiftyOneImageClassificationDataset)
"""

import json
from pathlib import Path

from transduce.labeling.answers import AnsweredLabels
from transduce.labeling.exports.imagefolder import refuse_unopenable
from transduce.labeling.settings import UNKNOWN_LABEL
from transduce.machine.atomic import replace_file


def export_fiftyone(labels: AnsweredLabels, out: Path) -> str:
    """Write labels.json and the empty folder data into the folder `out`."""
    refuse_unopenable(labels)
    names = labels.names
    classes = [*labels.classes.labels]
    if UNKNOWN_LABEL in names and UNKNOWN_LABEL not in classes:
        classes.append(UNKNOWN_LABEL)
    indices = {label: k for k, label in enumerate(classes)}
    (out / "data").mkdir(parents=True, exist_ok=True)

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as file:
            file.write('{"classes": ' + json.dumps(classes, ensure_ascii=False) + ', "labels": {')
            for row, name in enumerate(names):
                path = json.dumps(str(Path(labels.table.image_path[row]).absolute()))
                entry = json.dumps(_entry(labels, row, indices[name]), ensure_ascii=False)
                file.write(f"{',' if row else ''}\n{path}: {entry}")
            file.write("\n}}\n")

    replace_file(out / "labels.json", write)
    return f"labels.json of {len(labels):,} images; they stay where they are"


def _entry(labels: AnsweredLabels, row: int, index: int) -> dict[str, object]:
    table = labels.table
    return {
        "label": index,
        "confidence": round(float(table.score[row]), 6),
        "attributes": {
            "margin": round(float(table.margin[row]), 6),
            "doubt": round(float(table.doubt[row]), 6),
            "needs_review": bool(table.needs_review[row]),
            "reason": table.reason[row],
            "answered": row in labels.answers,
            **labels.extra_of(row),
        },
    }
