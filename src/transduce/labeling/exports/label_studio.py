"""Label Studio's tasks with predictions, and the labeling interface that they fit.

tasks.json is imported into a project whose labeling interface is config.xml. Images are named
by local-files URLs relative to the folder all of them lie in; Label Studio serves that folder
when it runs with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and
LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT set to it. What people answered in a review or audit is an
annotation, what the method says a prediction.
"""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from transduce.encoders.class_names import ClassNames
from transduce.labeling.answers import AnsweredLabels
from transduce.labeling.settings import UNKNOWN_LABEL
from transduce.machine.atomic import replace_file, replace_text

CHOICE, IMAGE = "label", "image"


def export_label_studio(labels: AnsweredLabels, out: Path) -> str:
    """Write tasks.json and config.xml into the folder `out`."""
    root = _root(labels.table.image_path)
    names = labels.names
    out.mkdir(parents=True, exist_ok=True)

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as file:
            file.write("[")
            for row, name in enumerate(names):
                task = json.dumps(_task(labels, row, name, root), ensure_ascii=False)
                file.write(f"{',' if row else ''}\n{task}")
            file.write("\n]\n")

    replace_file(out / "tasks.json", write)
    replace_text(out / "config.xml", _config(labels.classes))
    served = f"; serve {root} as LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT" if root else ""
    return f"tasks.json and config.xml of {len(labels):,} images{served}"


def _task(labels: AnsweredLabels, row: int, name: str, root: str) -> dict[str, Any]:
    table = labels.table
    result = {
        "id": f"label-{row}",
        "from_name": CHOICE,
        "to_name": IMAGE,
        "type": "choices",
        "value": {"choices": [name]},
    }
    answered = row in labels.answers
    task: dict[str, Any] = {
        "id": row + 1,
        "data": {
            IMAGE: _url(table.image_path[row], root),
            "file_name": table.file_name[row],
            "reason": table.reason[row],
            **labels.extra_of(row),
        },
        "annotations": [{"result": [result]}] if answered else [],
    }
    if not answered:
        task["predictions"] = [
            {
                "model_version": f"transduce {labels.run.summary.method}",
                "score": round(float(table.score[row]), 6),
                "result": [result],
            }
        ]
    return task


def _root(paths: tuple[str, ...]) -> str:
    """Return the folder that all local images lie in."""
    folders = {os.path.dirname(path) for path in paths if path and "://" not in path}  # noqa: PTH120
    return os.path.commonpath(folders) if folders else ""


def _url(path: str, root: str) -> str:
    if not path or "://" in path:
        return path
    return f"/data/local-files/?d={quote(os.path.relpath(path, root))}"


def _config(classes: ClassNames) -> str:
    labels = [*classes.labels]
    if UNKNOWN_LABEL not in labels:
        labels.append(UNKNOWN_LABEL)
    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in labels)
    return (
        f'<View>\n  <Image name="{IMAGE}" value="${IMAGE}"/>\n'
        f'  <Choices name="{CHOICE}" toName="{IMAGE}" choice="single">\n{choices}\n'
        "  </Choices>\n</View>\n"
    )
