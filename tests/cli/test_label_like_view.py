"""`transduce label NEW --like RUN` where another encoder compares the images (`--view`)."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.drawings import DRAWN, write_drawings
from tests.encoders.hub_layout import write_image_tower
from tests.labeling.stores import NAMES, write_simulated
from tests.labeling.test_views import write_view
from transduce import Task
from transduce.encoders.precomputed import TEXTS
from transduce.features.importing import import_arrays
from transduce.features.store import FeatureStore
from transduce.labeling.journal import Journal
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.views import View
from transduce.methods.anchored import Anchored
from transduce.methods.anchored.model import AnchoredModel

BEFORE, LATER = 120, 24


def run_of(number):
    return RunDirectory.load(f"out/transduce-{number:03d}")


def model_of(run):
    return AnchoredModel.from_arrays(run.model().batches[0])


@pytest.fixture
def stores(command, tmp_path):
    """A run of 120 images with a view far clearer than the names; returns the truth of 24 more."""
    truth = write_simulated(tmp_path / "every", images=BEFORE + LATER, noise=0.1, seed=1)
    every = FeatureStore.open(tmp_path / "every")
    parts = {"first": slice(0, BEFORE), "later": slice(BEFORE, None)}
    for name, rows in parts.items():
        keys = every.keys()[rows]
        store = import_arrays(every.embeddings()[rows], keys, tmp_path / name, encoder="simulated")
        shutil.copy(every.folder / TEXTS, store.folder / TEXTS)
        write_view(tmp_path / f"{name}-view", truth[rows], names=list(keys))
    options = ("--features", "first", "--view", "first-view", "--classes", ",".join(NAMES))
    code, _, err = command("label", *options)
    assert code == 0, err
    return truth[BEFORE:]


def test_images_join_by_the_view_of_the_run(command, stores):
    code, out, err = command(
        "label", "--features", "later", "--view", "later-view", "--like", "out/transduce-001"
    )
    assert code == 0, err
    assert "Joined    the 120 images before" in out
    run = run_of(2)
    assert run.summary.view == "clear"
    seen = View.of(run.view(), run.labels.file_name).take(np.arange(LATER))
    answer = Anchored().carry_on(model_of(run_of(1)), run.store().embeddings(), seen)
    np.testing.assert_array_equal(run.labels.label, answer.classes[:, 0])
    # As if all had come at once, and better than by names alone.
    first = run_of(1)
    before = View.of(first.view(), first.labels.file_name).take(np.arange(BEFORE))
    task = Task.from_embeddings(
        np.concatenate([first.store().embeddings(), run.store().embeddings()]).astype(np.float32),
        first.model().class_embeddings,
        view=np.concatenate([before, seen]),
        space="embedding",
    )
    np.testing.assert_array_equal(run.labels.label, Anchored().predict(task).labels[BEFORE:])
    assert (run.labels.label == stores).mean() > (run.labels.zero_shot_label == stores).mean() + 0.2
    assert model_of(run).past.images == BEFORE + LATER


def test_corrections_move_their_images_in_the_view(command, stores):
    before, run = model_of(run_of(1)).past, run_of(1)
    moved = int(run.labels.label[0])
    other = (moved + 1) % len(NAMES)
    Journal.open(run.folder).append("review", run.labels.file_name[0], NAMES[other])
    code, _, err = command(
        "label", "--features", "later", "--view", "later-view", "--like", "out/transduce-001"
    )
    assert code == 0, err
    later = np.bincount(run_of(2).labels.label, minlength=len(NAMES))
    after = model_of(run_of(2)).past
    assert after.mass[other] - before.mass[other] - later[other] == pytest.approx(1, abs=0.3)
    assert after.mass[moved] - before.mass[moved] - later[moved] == pytest.approx(-1, abs=0.3)


def test_a_view_that_is_missing_or_another_is_refused(command, stores, tmp_path):
    code, _, err = command("label", "--features", "later", "--like", "out/transduce-001")
    assert code == 2
    assert "Expected --view with the features of the new images by clear" in " ".join(err.split())
    code, _, err = command(
        "label", "--features", "later", "--view", "later", "--like", "out/transduce-001"
    )
    assert code == 2
    assert "clear" in err
    assert not Path("out/transduce-002").exists()


def test_the_encoder_of_the_view_embeds_the_new_images(command, drawings, tmp_path):
    tower = write_image_tower(tmp_path / "tower")
    code, _, err = command(
        "label", drawings, *DRAWN, "--view", f"onnx-image:{tower}", "--workers", "1"
    )
    assert code == 0, err
    new = write_drawings(tmp_path / "new", 6, seed=4)
    code, _, err = command("label", new, "--like", "out/transduce-001", "--workers", "1")
    assert code == 0, err
    run = run_of(2)
    assert run.summary.view == f"onnx-image:{tower}"
    assert run.view().keys() == run.store().keys()
    assert model_of(run).past.images == 12 + 6
    # What is written repeats it; a run without a view cannot be joined with one.
    code, _, err = command("label", "--run", "out/transduce-002/run.toml", "--workers", "1")
    assert code == 0, err
    np.testing.assert_array_equal(run_of(3).labels.label, run.labels.label)
    assert command("label", drawings, *DRAWN, "--workers", "1")[0] == 0
    code, _, err = command(
        "label", new, "--like", "out/transduce-004", "--view", f"onnx-image:{tower}"
    )
    assert code == 2
    assert "found one where it has no view" in " ".join(err.split())
