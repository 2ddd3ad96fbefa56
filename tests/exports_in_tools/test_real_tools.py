"""Every export, opened by the tool it is for: FiftyOne, Label Studio, cleanlab, datasets, pandas.

These tools are large, so they live in a virtual environment of their own: make test-exports.
"""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.labeling.report.small_runs import small_run
from transduce.labeling.answers import answered_labels
from transduce.labeling.exports import EXPORTERS
from transduce.labeling.exports.imagefolder import safe_name

TOOLS = os.environ.get("TRANSDUCE_EXPORT_TOOLS", "")  # the Python that has them
NAMES = ["a.png", "a.jpg.png", "sub/a.png", 'wit\'h "q".png', "🦊.png", "b.c.png", "=1+1.png"]
CLASSES = ("cat/dog", "<b>fox</b>", "ünique")
ANSWERS = {"a.png": "ünique", "sub/a.png": "unknown"}

pytestmark = pytest.mark.skipif(not TOOLS, reason="make test-exports sets up the tools themselves")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    run = small_run(folder, names=NAMES, classes=CLASSES, truth=False)
    lines = [f"{name},{label}" for name, label in ANSWERS.items()]
    (run.folder / "reviewed.csv").write_text("\n".join(["file_name,label", *lines]))
    sets = tuple(CLASSES[: number % 4] for number in range(len(NAMES)))
    labels = replace(answered_labels(run), certified=np.arange(len(NAMES)) % 2 == 0, sets=sets)
    (folder / "to").mkdir()
    for name, export in EXPORTERS.items():
        export(labels, folder / "to" / name)
    return labels


@pytest.fixture(scope="module")
def read(exported):
    script = Path(__file__).with_name("read_with_tools.py")
    folder = exported.run.folder.parents[1] / "to"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    made = subprocess.run(
        [TOOLS, str(script), str(folder)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    lines = [json.loads(line) for line in made.stdout.splitlines() if line.startswith('{"tool"')]
    return {line["tool"]: line["read"] for line in lines}


@pytest.mark.parametrize("name", ["parquet", "jsonl"])
def test_pandas_reads_sets_of_classes(exported, read, name):
    assert read[name][-1] == [list(classes) for classes in exported.sets]


@pytest.mark.parametrize("name", ["csv", "parquet", "jsonl"])
def test_pandas_reads_labels_and_certified(exported, read, name):
    labels, certified = read[name][:2]
    assert labels == exported.names
    assert certified == exported.certified.tolist()


def test_fiftyone_opens_the_folder_as_it_is(exported, read):
    paths = exported.table.image_path
    assert read["fiftyone"] == {
        path: {"label": label, "certified": bool(certified), "classes": list(classes)}
        for path, label, certified, classes in zip(
            paths, exported.names, exported.certified, exported.sets, strict=True
        )
    }


def test_fiftyone_and_hugging_face_read_the_tree_of_classes(exported, read):
    wanted = sorted(safe_name(label) for label in exported.names)
    assert read["imagefolder"] == wanted
    assert sorted(label for _, label in read["fiftyone-tree"]) == wanted


def test_label_studio_has_the_answers_as_annotations(read):
    assert read["label-studio"] == {name: ANSWERS.get(name, "") for name in NAMES}


def test_cleanlab_takes_the_arrays(read):
    assert read["cleanlab"] == {"rows": 6, "issues": "b", "found": 6}  # all but the unknown one
