"""Each format as its readers know it; where a reader is at hand, it reads."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.labeling.report.small_runs import small_run
from transduce.errors import InvalidRun, UnknownName
from transduce.labeling.exports import EXPORTERS, export_imagefolder
from transduce.labeling.exports.imagefolder import safe_name
from transduce.labeling.files import labels_of

NAMES = ["a.png", "a.jpg.png", "sub/a.png", 'wit\'h "q".png', "🦊.png", "b.c.png", "x&<i>.png"]
CLASSES = ("cat/dog", "<b>fox</b>", "ünique")


@pytest.fixture
def run(tmp_path):
    return small_run(tmp_path, names=NAMES, classes=CLASSES)


def test_csv_and_parquet_are_the_runs_own(run, tmp_path):
    EXPORTERS["csv"](run, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_bytes() == (run.folder / "labels.csv").read_bytes()
    EXPORTERS["parquet"](run, tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert table.num_rows == len(NAMES)
    assert "probabilities" in table.column_names


def test_json_lines_have_the_best_classes_first(run, tmp_path):
    EXPORTERS["jsonl"](run, tmp_path / "x.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [line["file_name"] for line in lines] == NAMES
    labels = labels_of(run.labels.label, run.classes)
    assert [line["label"] for line in lines] == labels
    for line in lines:
        scores = [entry["score"] for entry in line["predictions"]]
        assert scores == sorted(scores, reverse=True)
        assert set(line["predictions"][0]) == {"score", "label"}
        assert line["predictions"][0]["label"] == line["label"]


# In a process of its own: our tests have a package of the same name.
READER = """
import json, sys
from datasets import load_dataset
for folder in sys.argv[2:]:
    read = load_dataset("imagefolder", data_dir=folder, cache_dir=sys.argv[1])["train"]
    labels = read.features["label"]
    found = [labels.int2str(entry) for entry in read["label"]]
    print(json.dumps({"labels": found, "size": read[0]["image"].size}))
"""


def test_imagefolder_is_read_by_hugging_face(run, tmp_path):
    links = ("symlink", "hardlink", "copy")
    for link in links:
        export_imagefolder(run, tmp_path / link, link)
        placed = [path for path in (tmp_path / link).rglob("*") if path.is_file()]
        assert len(placed) == len(NAMES)
        assert all(path.is_symlink() == (link == "symlink") for path in placed)
    cache = tmp_path / "cache"
    environment = {**os.environ, "HF_HOME": str(cache), "HF_DATASETS_OFFLINE": "1"}
    made = subprocess.run(
        [sys.executable, "-c", READER, str(cache), *(str(tmp_path / link) for link in links)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    wanted = sorted(safe_name(label) for label in labels_of(run.labels.label, run.classes))
    for line in made.stdout.splitlines():
        read = json.loads(line)
        assert sorted(read["labels"]) == wanted
        assert read["size"] == [40, 30]
    assert len(made.stdout.splitlines()) == 3


def test_images_that_are_gone_are_refused_before_any_link(run, tmp_path):
    Path(run.labels.image_path[2]).unlink()
    with pytest.raises(InvalidRun, match=r"'sub/a\.png'"):
        export_imagefolder(run, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("name", ["../up", "a/b", "..", "nul\0", "co:lon"])
def test_class_names_cannot_leave_the_folder(name):
    safe = safe_name(name)
    assert safe
    assert not set(safe) & set("/\\\0:")
    assert safe not in ("", ".", "..")


def test_fiftyone_finds_images_by_identifier(run, tmp_path):
    EXPORTERS["fiftyone"](run, tmp_path / "f")
    data = json.loads((tmp_path / "f/data.json").read_text())
    labels = json.loads((tmp_path / "f/labels.json").read_text())
    assert set(labels) == {"classes", "labels"}
    assert labels["classes"] == list(CLASSES)
    assert set(data) == set(labels["labels"])
    assert len(data) == len(NAMES)
    assert list(data.values()) == list(run.labels.image_path)
    for identifier, entry in labels["labels"].items():
        assert "." not in identifier
        assert set(entry) == {"label", "confidence", "attributes"}
        assert entry["label"] in range(3)
        assert 0.0 <= entry["confidence"] <= 1.0


def test_label_studio_tasks_fit_their_interface(run, tmp_path):
    EXPORTERS["label-studio"](run, tmp_path / "l")
    tasks = json.loads((tmp_path / "l/tasks.json").read_text())
    view = ElementTree.parse(tmp_path / "l/config.xml").getroot()
    image, choices = view.find("Image"), view.find("Choices")
    allowed = {choice.get("value") for choice in choices}
    assert choices.get("toName") == image.get("name")
    for task, name in zip(tasks, NAMES, strict=True):
        assert image.get("value") == "$image"
        assert task["data"]["file_name"] == name
        assert task["data"]["image"].startswith("/data/local-files/?d=")
        assert not set(task["data"]["image"]) & set(" <>\"'")
        (prediction,) = task["predictions"]
        assert 0.0 <= prediction["score"] <= 1.0
        (result,) = prediction["result"]
        assert (result["from_name"], result["to_name"]) == (choices.get("name"), image.get("name"))
        assert result["type"] == "choices"
        assert set(result["value"]["choices"]) <= allowed


def test_cleanlab_gets_whole_numbers_and_rows_that_sum_to_one(tmp_path):
    run = small_run(tmp_path, images=40, classes=("a", "b", "c", "d"), truth=False)
    EXPORTERS["cleanlab"](run, tmp_path / "c")
    labels = np.load(tmp_path / "c/labels.npy", allow_pickle=False)
    probabilities = np.load(tmp_path / "c/pred_probs.npy", allow_pickle=False)
    classes = json.loads((tmp_path / "c/classes.json").read_text())
    assert labels.dtype.kind == "i"
    assert set(labels.tolist()) == set(range(len(classes)))
    assert probabilities.shape == (40, len(classes))
    np.testing.assert_allclose(probabilities.sum(1), 1.0)


def test_an_unknown_format_suggests_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'imagefolder'"):
        EXPORTERS["image-folder"]
