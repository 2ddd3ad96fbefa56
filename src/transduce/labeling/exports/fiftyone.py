"""FiftyOne's FiftyOneImageClassificationDataset.

data.json says where the images are; labels.json has the classes, and the label (an index of them),
confidence and attributes of each image.

    fiftyone.Dataset.from_dir(OUT, fiftyone.types.FiftyOneImageClassificationDataset)
"""

from pathlib import Path

from transduce.atomic import replace_json
from transduce.labeling.files import labels_of
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN_LABEL


def export_fiftyone(run: RunDirectory, out: Path) -> str:
    """Write data.json and labels.json into the folder `out`."""
    table = run.labels
    names = labels_of(table.label, run.classes)
    classes = [*run.classes.labels]
    if UNKNOWN_LABEL in names and UNKNOWN_LABEL not in classes:
        classes.append(UNKNOWN_LABEL)
    indices = {label: k for k, label in enumerate(classes)}
    identifiers = _identifiers(table.file_name)
    labels = {
        identifier: {
            "label": indices[names[row]],
            "confidence": round(float(table.score[row]), 6),
            "attributes": {
                "margin": round(float(table.margin[row]), 6),
                "needs_review": bool(table.needs_review[row]),
                "reason": table.reason[row],
            },
        }
        for row, identifier in enumerate(identifiers)
    }
    out.mkdir(parents=True, exist_ok=True)
    replace_json(out / "data.json", dict(zip(identifiers, table.image_path, strict=True)))
    replace_json(out / "labels.json", {"classes": classes, "labels": labels})
    return f"data.json and labels.json of {len(table):,} images"


def _identifiers(file_names: tuple[str, ...]) -> list[str]:
    """Return names without extension, each once; FiftyOne cuts off whatever follows a dot."""
    taken: set[str] = set()
    identifiers = []
    for name in file_names:
        stem = name.removesuffix(Path(name).suffix).replace(".", "_")
        identifier, number = stem, 2
        while identifier in taken:
            identifier, number = f"{stem}-{number}", number + 1
        taken.add(identifier)
        identifiers.append(identifier)
    return identifiers
