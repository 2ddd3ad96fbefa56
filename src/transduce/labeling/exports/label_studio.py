"""Label Studio's tasks with predictions, and the labeling interface that they fit.

tasks.json is imported into a project whose labeling interface is config.xml. Images are named
by local-files URLs relative to the folder all of them lie in; Label Studio serves that folder
when it runs with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and
LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT set to it.
"""

import os
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from transduce.atomic import replace_json, replace_text
from transduce.labeling.files import labels_of
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN_LABEL

CHOICE, IMAGE = "label", "image"


def export_label_studio(run: RunDirectory, out: Path) -> str:
    """Write tasks.json and config.xml into the folder `out`."""
    table = run.labels
    names = labels_of(table.label, run.classes)
    root = _root(table.image_path)
    tasks = [
        {
            "data": {
                IMAGE: _url(path, root),
                "file_name": table.file_name[row],
                "reason": table.reason[row],
            },
            "predictions": [
                {
                    "model_version": f"transduce {run.summary.method}",
                    "score": round(float(table.score[row]), 6),
                    "result": [
                        {
                            "id": f"label-{row}",
                            "from_name": CHOICE,
                            "to_name": IMAGE,
                            "type": "choices",
                            "value": {"choices": [names[row]]},
                        }
                    ],
                }
            ],
        }
        for row, path in enumerate(table.image_path)
    ]
    out.mkdir(parents=True, exist_ok=True)
    replace_json(out / "tasks.json", tasks)
    replace_text(out / "config.xml", _config(run))
    served = f"; serve {root} as LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT" if root else ""
    return f"tasks.json and config.xml of {len(tasks):,} images{served}"


def _root(paths: tuple[str, ...]) -> str:
    """Return the folder that all local images lie in."""
    local = [os.path.dirname(path) for path in paths if path and "://" not in path]  # noqa: PTH120
    return os.path.commonpath(local) if local else ""


def _url(path: str, root: str) -> str:
    if not path or "://" in path:
        return path
    return f"/data/local-files/?d={quote(os.path.relpath(path, root))}"


def _config(run: RunDirectory) -> str:
    labels = [*run.classes.labels]
    if UNKNOWN_LABEL not in labels:
        labels.append(UNKNOWN_LABEL)
    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in labels)
    return (
        f'<View>\n  <Image name="{IMAGE}" value="${IMAGE}"/>\n'
        f'  <Choices name="{CHOICE}" toName="{IMAGE}" choice="single">\n{choices}\n'
        "  </Choices>\n</View>\n"
    )
