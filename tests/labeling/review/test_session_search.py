"""What a session finds besides the queue: copies, words, groups of unknown images, sets."""

import dataclasses

import numpy as np
import pytest
from PIL import Image

from tests.labeling.report.small_runs import small_run
from transduce.benchmark.synthetic import UNSEEN, name_of
from transduce.cli.demo import draw_folder
from transduce.encoders import load_encoder
from transduce.encoders.class_names import ClassNames
from transduce.errors import InvalidAnswer
from transduce.labeling.files import write_labels_parquet
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.problem import BestClasses
from transduce.labeling.review.session import ReviewSession
from transduce.labeling.run_directory import LABELS_PARQUET, RunDirectory
from transduce.labeling.settings import UNKNOWN, LabelSettings
from transduce.labeling.trust.audit import draw_audit
from transduce.labeling.trust.class_sets import prediction_sets, write_sets

DOUBTFUL = [[0.4, 0.35, 0.25]] * 6


@pytest.fixture
def run(tmp_path):
    return small_run(tmp_path, images=6, probabilities=DOUBTFUL)


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """A real run of drawn images, two of them the same to the eye."""
    folder = tmp_path_factory.mktemp("shapes")
    draw_folder(folder / "images", images=24, classes=3, seed=0)
    first = sorted((folder / "images").iterdir())[0]
    Image.open(first).save(folder / "images" / "copy.png", compress_level=1)
    names = ClassNames.of([name_of(pair) for pair in UNSEEN][:6])
    settings = LabelSettings(
        source=str(folder / "images"), classes=names.labels, prompts=names.prompts,
        encoder="shapes", allow_unknown=True,
    )  # fmt: skip
    return run_labeling(settings, folder / "out")


def test_images_that_look_the_same_are_found(shapes):
    session = ReviewSession(shapes)
    copy = shapes.labels.file_name.index("copy.png")
    (other,) = session.ask_again(copy)["item"]["same"]
    found = session.search_like(copy)["cells"]
    assert [found[0]["row"], found[1]["row"]] == [copy, other]
    assert len(found) == len(shapes.labels)


def test_words_are_looked_for_with_the_encoder_of_the_run(shapes):
    session = ReviewSession(shapes)
    found = session.search(" red square ")
    assert (found["kind"], found["title"]) == ("search", "red square")
    words = load_encoder("shapes").embed_texts(["a photo of a red square."])[0]
    wanted = np.argsort(-(shapes.store().embeddings() @ words), kind="stable")
    assert [cell["row"] for cell in found["cells"]][:10] == wanted[:10].tolist()
    with pytest.raises(InvalidAnswer, match=r"Words cannot be looked for here: .*zzyzx"):
        session.search("zzyzx")
    with pytest.raises(InvalidAnswer, match="found none"):
        session.search("  ")


def test_without_its_features_a_run_is_reviewed_but_not_searched(run):
    session = ReviewSession(run)
    assert session.state()["item"]["same"] == []
    for wish in (lambda: session.search("cat"), lambda: session.search_like(0)):
        with pytest.raises(InvalidAnswer, match="Expected the features of the run"):
            wish()


def test_images_of_no_class_come_in_groups(shapes):
    unknown = np.arange(len(shapes.labels)) < 9
    label = np.where(unknown, UNKNOWN, shapes.labels.label)
    run = dataclasses.replace(shapes, labels=dataclasses.replace(shapes.labels, label=label))
    groups = [g for g in ReviewSession(run).groups()["groups"] if g["kind"] == "unknown"]
    assert sum(group["left"] for group in groups) == 9
    assert max(group["left"] for group in groups) > 1


def test_a_run_that_keeps_only_the_best_classes_has_its_candidates(tmp_path):
    probabilities = np.float32([[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]])
    run = small_run(tmp_path, images=2, probabilities=probabilities)
    best = BestClasses(np.int32([[1, 2], [2, 0]]), np.float32([[0.7, 0.2], [0.4, 0.5]]), 3)
    write_labels_parquet(run.folder / LABELS_PARQUET, run.labels, run.classes, best)
    session = ReviewSession(RunDirectory.load(run.folder))
    for row, wanted in ((0, ["dog", "fox"]), (1, ["cat", "fox"])):
        item = session.ask_again(row)["item"]
        assert [entry["label"] for entry in item["candidates"]] == wanted


def test_sets_of_classes_are_shown(run):
    for name in draw_audit(run, 6).file_names:
        run.journal().append("audit", name, "dog")
    write_sets(run, prediction_sets(run, 0.8))
    item = ReviewSession(run).state()["item"]
    assert (item["coverage"], item["set"]) == ("0.8", ["cat", "dog"])
