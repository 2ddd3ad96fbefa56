"""Each format as its readers know it; where a reader is at hand, it reads."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.labeling.report.small_runs import small_run
from tests.labeling.trust.audited_runs import run_with_doubts, true_answers
from transduce.errors import InvalidRun, UnknownName
from transduce.labeling.answers import answered_labels
from transduce.labeling.exports import EXPORTERS, export_imagefolder
from transduce.labeling.exports.imagefolder import safe_name
from transduce.labeling.files import labels_of, read_labeled
from transduce.labeling.journal import Journal
from transduce.labeling.trust.audit import draw_audit
from transduce.labeling.trust.certificate import certify
from transduce.labeling.trust.class_sets import prediction_sets, write_sets

NAMES = ["a.png", "a.jpg.png", "sub/a.png", 'wit\'h "q".png', "🦊.png", "b.c.png", "x&<i>.png"]
CLASSES = ("cat/dog", "<b>fox</b>", "ünique")


@pytest.fixture
def run(tmp_path):
    return small_run(tmp_path, names=NAMES, classes=CLASSES)


def test_csv_and_parquet_without_answers_are_the_runs_own(run, tmp_path):
    EXPORTERS["csv"](answered_labels(run), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_bytes() == (run.folder / "labels.csv").read_bytes()
    EXPORTERS["parquet"](answered_labels(run), tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert table.num_rows == len(NAMES)
    assert "probabilities" in table.column_names


ANSWERS = {"a.png": "ünique", "sub/a.png": "unknown", "b.c.png": "a new class"}


def answered(run):
    """The run, with answers of a review, of an audit, and one that was taken back."""
    journal = Journal.open(run.folder)
    journal.append("review", "🦊.png", CLASSES[0])
    journal.append("undo", "🦊.png")
    journal.append("review", "a.png", CLASSES[0])
    for (name, label), kind in zip(ANSWERS.items(), ("audit", "review", "review"), strict=True):
        journal.append(kind, name, label)
    return run


def rows_of(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def labels_in(name, out):
    """The label of each file in an export, as far as the format has one."""
    if name == "csv":
        return {row["file_name"]: row["label"] for row in rows_of(out)}
    if name == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        return {row["file_name"]: row["label"] for row in rows}
    if name == "parquet":
        rows = pq.read_table(out, columns=["file_name", "label"]).to_pylist()
        return {row["file_name"]: row["label"] for row in rows}
    if name == "imagefolder":
        placed = [path for path in out.rglob("*") if path.is_symlink()]
        return {path.name.replace("__", "/"): path.parent.name for path in placed}
    if name == "fiftyone":
        read = json.loads((out / "labels.json").read_text())
        classes = read["classes"]
        return {
            path.partition("/images/")[2]: classes[entry["label"]]
            for path, entry in read["labels"].items()
        }
    if name == "label-studio":
        tasks = json.loads((out / "tasks.json").read_text())
        answers = [task for task in tasks if task["annotations"]]
        return {
            task["data"]["file_name"]: task["annotations"][0]["result"][0]["value"]["choices"][0]
            for task in answers
        }
    names, classes = (
        json.loads((out / f).read_text()) for f in ("file_names.json", "classes.json")
    )
    numbers = np.load(out / "labels.npy", allow_pickle=False)
    return {name: classes[k] for name, k in zip(names, numbers, strict=True)}


@pytest.mark.parametrize("name", EXPORTERS)
def test_answers_are_in_every_export(run, tmp_path, name):
    EXPORTERS[name](answered_labels(answered(run)), tmp_path / "exported")
    found = labels_in(name, tmp_path / "exported")
    for file, label in ANSWERS.items():
        if name == "cleanlab" and label == "unknown":
            assert file not in found  # cleanlab has no word for it
        else:
            assert found[file] == label
    if name != "label-studio":  # whose other tasks have predictions instead
        assert len(found) == len(NAMES) - (name == "cleanlab")


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_answers_can_be_left_out(run, tmp_path, name):
    EXPORTERS[name](answered_labels(answered(run), review=False), tmp_path / "exported")
    labels = labels_of(run.labels.label, run.classes)
    assert labels_in(name, tmp_path / "exported") == dict(zip(NAMES, labels, strict=True))


def test_answered_rows_are_sure_of_their_class(run):
    labels = answered_labels(answered(run))
    ((_, block),) = labels.probability_blocks()
    assert block.shape == (len(NAMES), len(CLASSES) + 1)
    np.testing.assert_allclose(block.sum(1), 1.0, rtol=1e-6)
    assert block[0].tolist() == [0, 0, 1, 0]
    assert block[2].tolist() == [0.25] * 4
    assert block[5].tolist() == [0, 0, 0, 1]
    doubted = int(np.flatnonzero(run.labels.needs_review)[0])
    Journal.open(run.folder).append("review", NAMES[doubted], CLASSES[0])
    assert not answered_labels(run).table.needs_review[doubted]
    assert answered_labels(run, review=False).table.needs_review[doubted]


@pytest.mark.parametrize("name", EXPORTERS)
def test_certified_is_in_every_export(run, tmp_path, name):
    certified = np.arange(len(NAMES)) % 3 == 0
    labels = replace(answered_labels(run), certified=certified)
    out = tmp_path / "exported"
    EXPORTERS[name](labels, out)
    if name == "csv":
        found = [row["certified"] == "true" for row in rows_of(out)]
    elif name == "jsonl":
        found = [json.loads(line)["certified"] for line in out.read_text().splitlines()]
    elif name == "parquet":
        found = pq.read_table(out)["certified"].to_pylist()
    elif name == "imagefolder":
        rows = rows_of(out / "certified.csv")
        assert all((out / row["file_name"]).is_file() for row in rows)
        found = [row["certified"] == "true" for row in rows]
    elif name == "fiftyone":
        entries = json.loads((out / "labels.json").read_text())["labels"].values()
        found = [entry["attributes"]["certified"] for entry in entries]
    elif name == "label-studio":
        tasks = json.loads((out / "tasks.json").read_text())
        found = [task["data"]["certified"] for task in tasks]
    else:
        found = np.load(out / "certified.npy").tolist()
    assert found == certified.tolist()


@pytest.mark.parametrize("name", EXPORTERS)
def test_sets_of_classes_are_in_every_export(run, tmp_path, name):
    sets = (CLASSES[:2], CLASSES[2:], (), CLASSES, CLASSES[:1], CLASSES[1:], CLASSES[1:2])
    labels = replace(answered_labels(run), sets=sets)
    out = tmp_path / "exported"
    EXPORTERS[name](labels, out)
    if name == "csv":
        found = [row["classes"] for row in rows_of(out)]
    elif name == "imagefolder":
        rows = rows_of(out / "classes.csv")
        assert all((out / row["file_name"]).is_file() for row in rows)
        found = [row["classes"] for row in rows]
    elif name == "jsonl":
        found = [json.loads(line)["classes"] for line in out.read_text().splitlines()]
    elif name == "parquet":
        found = pq.read_table(out)["classes"].to_pylist()
    elif name == "fiftyone":
        entries = json.loads((out / "labels.json").read_text())["labels"].values()
        found = [entry["attributes"]["classes"] for entry in entries]
    elif name == "label-studio":
        tasks = json.loads((out / "tasks.json").read_text())
        found = [task["data"]["classes"] for task in tasks]
    else:
        found = json.loads((out / "sets.json").read_text())
    cells = name in ("csv", "imagefolder")
    assert found == ["; ".join(names) if cells else list(names) for names in sets]


def test_the_set_of_an_answered_image_is_the_answer(tmp_path):
    run = run_with_doubts(tmp_path)
    audit = draw_audit(run, 100, seed=1)
    certify(run, true_answers(run, audit))
    sets = prediction_sets(run, 0.9)
    assert "classes" not in answered_labels(run).extra_columns()
    write_sets(run, sets)
    asked = set(audit.rows.tolist())
    unknown, added, left = [row for row in range(300) if row not in asked][-3:]
    Journal.open(run.folder).append("review", run.labels.file_name[unknown], "unknown")
    Journal.open(run.folder).append("review", run.labels.file_name[added], "lynx")
    found = answered_labels(run).sets
    assert (found[unknown], found[added], found[left]) == ((), ("lynx",), sets[left])
    for row, name in zip(audit.rows, audit.file_names, strict=True):
        assert found[row] == (audit_answer(run, name),)
    assert answered_labels(run, review=False).sets == tuple(sets)


def audit_answer(run, name):
    return Journal.open(run.folder).audit[name]


@pytest.mark.parametrize("bad", ["=1+1.png", "+x.png", "-x.png", "@x.png", "'=x.png"])
def test_names_are_no_formulas_in_a_spreadsheet(tmp_path, bad):
    run = small_run(tmp_path, names=[bad, "b.png"], classes=("=HYPERLINK(1)", "b"))
    EXPORTERS["csv"](answered_labels(run), tmp_path / "x.csv")
    for path in (tmp_path / "x.csv", run.folder / "labels.csv"):
        cells = [cell for row in csv.reader(path.read_text().splitlines()) for cell in row]
        assert not [cell for cell in cells if cell[:1] in "=+-@" and cell]
    assert read_labeled(tmp_path / "x.csv").keys() == {bad, "b.png"}  # and read as they were


def test_json_lines_have_the_best_classes_first(run, tmp_path):
    EXPORTERS["jsonl"](answered_labels(run), tmp_path / "x.jsonl")
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
        export_imagefolder(answered_labels(run), tmp_path / link, link)
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
        export_imagefolder(answered_labels(run), tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("name", ["../up", "a/b", "..", "nul\0", "co:lon"])
def test_class_names_cannot_leave_the_folder(name):
    safe = safe_name(name)
    assert safe
    assert not set(safe) & set("/\\\0:")
    assert safe not in ("", ".", "..")


def test_fiftyone_finds_images_by_their_paths(run, tmp_path):
    EXPORTERS["fiftyone"](answered_labels(run), tmp_path / "f")
    assert (tmp_path / "f/data").is_dir()
    labels = json.loads((tmp_path / "f/labels.json").read_text())
    assert set(labels) == {"classes", "labels"}
    assert labels["classes"] == list(CLASSES)
    assert list(labels["labels"]) == list(run.labels.image_path)
    for entry in labels["labels"].values():
        assert set(entry) == {"label", "confidence", "attributes"}
        assert entry["label"] in range(3)
        assert 0.0 <= entry["confidence"] <= 1.0


def test_label_studio_tasks_fit_their_interface(run, tmp_path):
    EXPORTERS["label-studio"](answered_labels(run), tmp_path / "l")
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
        assert task["annotations"] == []
        (prediction,) = task["predictions"]
        assert 0.0 <= prediction["score"] <= 1.0
        (result,) = prediction["result"]
        assert (result["from_name"], result["to_name"]) == (choices.get("name"), image.get("name"))
        assert result["type"] == "choices"
        assert set(result["value"]["choices"]) <= allowed


def test_cleanlab_gets_whole_numbers_and_rows_that_sum_to_one(tmp_path):
    run = small_run(tmp_path, images=40, classes=("a", "b", "c", "d"), truth=False)
    EXPORTERS["cleanlab"](answered_labels(run), tmp_path / "c")
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
