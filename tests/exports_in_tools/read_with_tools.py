"""Read every export with the tool it is for; prints what was read, a line of JSON a tool.

Runs in a virtual environment of the tools, which need not have transduce (make test-exports).

    python read_with_tools.py FOLDER_OF_EXPORTS
"""

import json
import sys
from pathlib import Path


def fiftyone(folder):
    """As Dataset.from_dir(OUT, FiftyOneImageClassificationDataset) does, without its database."""
    from fiftyone.types import FiftyOneImageClassificationDataset
    from fiftyone.utils.data.importers import build_dataset_importer

    importer, _ = build_dataset_importer(
        FiftyOneImageClassificationDataset, dataset_dir=str(folder)
    )
    with importer:
        return {
            path: {
                "label": label.label,
                "certified": label["certified"],
                "classes": list(label["classes"]),
            }
            for path, _, label in importer
        }


def fiftyone_tree(folder):
    from fiftyone.types import ImageClassificationDirectoryTree
    from fiftyone.utils.data.importers import build_dataset_importer

    importer, _ = build_dataset_importer(ImageClassificationDirectoryTree, dataset_dir=str(folder))
    with importer:
        return sorted([Path(path).name, label.label] for path, _, label in importer)


def label_studio(folder):
    """The converter reads the annotations of people; predictions are not its business."""
    from label_studio_converter import Converter

    out = folder / "converted"
    converter = Converter(str(folder / "config.xml"), str(folder), download_resources=False)
    (folder / "only").mkdir()
    (folder / "only/tasks.json").write_bytes((folder / "tasks.json").read_bytes())
    converter.convert_to_csv(str(folder / "only"), str(out), is_dir=True, header=True, sep=",")
    import pandas

    read = pandas.read_csv(out / "result.csv").fillna({"label": ""})
    return dict(zip(read["file_name"], read["label"], strict=True))


def cleanlab(folder):
    import numpy as np
    from cleanlab.filter import find_label_issues

    labels, probabilities = np.load(folder / "labels.npy"), np.load(folder / "pred_probs.npy")
    issues = find_label_issues(labels=labels, pred_probs=probabilities)
    return {"rows": len(labels), "issues": issues.dtype.kind, "found": len(issues)}


def datasets(folder):
    from datasets import load_dataset

    read = load_dataset("imagefolder", data_dir=str(folder), cache_dir=str(folder.parent / "hf"))
    names = read["train"].features["label"]
    return sorted(names.int2str(entry) for entry in read["train"]["label"])


def pandas_csv(folder):
    import pandas

    read = pandas.read_csv(folder)
    return [read["label"].tolist(), read["certified"].tolist(), str(read["certified"].dtype)]


def pandas_parquet(folder):
    import pandas

    read = pandas.read_parquet(folder)
    columns = [read["label"].tolist(), read["certified"].tolist(), len(read["probabilities"][0])]
    return [*columns, [list(classes) for classes in read["classes"]]]


def pandas_jsonl(folder):
    import pandas

    read = pandas.read_json(folder, lines=True)
    return [read["label"].tolist(), read["certified"].tolist(), read["classes"].tolist()]


READERS = {
    "csv": pandas_csv,
    "parquet": pandas_parquet,
    "jsonl": pandas_jsonl,
    "cleanlab": cleanlab,
    "imagefolder": datasets,
    "label-studio": label_studio,
    "fiftyone": fiftyone,
}

if __name__ == "__main__":
    exports = Path(sys.argv[1])
    for name, reader in READERS.items():
        print(json.dumps({"tool": name, "read": reader(exports / name)}), flush=True)
    print(json.dumps({"tool": "fiftyone-tree", "read": fiftyone_tree(exports / "imagefolder")}))
