"""Views by a second encoder: what they change, where they come from, what is refused."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import transduce
from tests.cli.drawings import CLASSES, write_drawings
from tests.encoders.hub_layout import write_image_tower
from tests.labeling.stores import NAMES, write_simulated, write_truth
from transduce.encoders import ENCODERS, load_encoder
from transduce.errors import InvalidSetting, InvalidStore
from transduce.features.importing import import_arrays
from transduce.features.store import FeatureStore
from transduce.labeling.pipeline import run_labeling, solve_again
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import LabelSettings, read_settings
from transduce.labeling.views import View, view_hint
from transduce.methods.anchored import Anchored
from transduce.task import Task

IMAGES = 120


def write_view(folder, truth, *, names=None, noise=0.2, seed=3):
    """Features of another encoder, in another order: far clearer than the first one's."""
    random = np.random.default_rng(seed)
    rows = np.eye(len(NAMES))[truth] + noise * random.normal(size=(len(truth), len(NAMES)))
    names = names or [f"image-{number:04d}.jpg" for number in range(len(truth))]
    order = random.permutation(len(names))
    return import_arrays(rows[order], [names[row] for row in order], folder, encoder="clear")


@pytest.fixture
def simulated(tmp_path):
    """Settings of 120 images of 12 classes with a view of them, and the truth."""
    truth = write_simulated(tmp_path / "feats", images=IMAGES, noise=0.1)
    write_view(tmp_path / "view", truth)
    settings = LabelSettings(
        source="",
        classes=NAMES,
        prompts=NAMES,
        encoder="",
        features=str(tmp_path / "feats"),
        view=str(tmp_path / "view"),
        truth=str(write_truth(tmp_path / "truth.csv", truth)),
    )
    return settings, truth


def test_images_are_compared_by_the_view_whatever_its_order(simulated, tmp_path):
    settings, truth = simulated
    alone = run_labeling(replace(settings, view=""), tmp_path / "out")
    run = run_labeling(settings, tmp_path / "out")
    assert run.summary.evaluation.accuracy > alone.summary.evaluation.accuracy
    assert (run.summary.view, alone.summary.view) == ("clear", "")
    store, view = run.store(), run.view()
    seen = View.of(view, store.keys()).take(np.arange(IMAGES))
    np.testing.assert_array_equal(seen.argmax(1)[:9], truth[:9])
    task = Task.from_embeddings(
        store.embeddings(), run.model().class_embeddings, view=seen, space="embedding"
    )
    np.testing.assert_array_equal(run.labels.label, Anchored().predict(task).labels)


def test_batches_take_their_own_rows_of_the_view(simulated, tmp_path):
    run = run_labeling(replace(simulated[0], batch=50, seed=4), tmp_path / "out")
    store = run.store()
    view = View.of(run.view(), store.keys())
    for part in np.array_split(np.random.default_rng(4).permutation(IMAGES), 3):
        rows = np.sort(part)
        task = Task.from_embeddings(
            store.take(rows), run.model().class_embeddings, view=view.take(rows), space="embedding"
        )
        np.testing.assert_array_equal(run.labels.label[rows], Anchored().predict(task).labels)


def test_corrections_and_repetitions_keep_the_view(simulated, tmp_path):
    settings, truth = simulated
    run = run_labeling(settings, tmp_path / "out")
    wrong = np.flatnonzero(run.labels.label != truth)[:2]
    rows = wrong if len(wrong) else np.array([0, 1])
    names = [run.labels.file_name[row] for row in rows]
    fixes = {name: NAMES[truth[row]] for name, row in zip(names, rows, strict=True)}
    again = solve_again(run, fixes)
    assert again.summary.view == "clear"
    assert again.summary.corrected == len(rows)
    np.testing.assert_array_equal(again.labels.label[rows], truth[rows])
    once_more = run_labeling(read_settings(again.folder / "run.toml"), tmp_path / "elsewhere")
    np.testing.assert_array_equal(once_more.labels.label, again.labels.label)


def test_files_of_other_programs_become_part_of_the_run(simulated, tmp_path):
    settings, _ = simulated
    view = FeatureStore.open(settings.view)
    np.savez(tmp_path / "mine.npz", embeddings=view.embeddings(), file_name=view.keys())
    run = run_labeling(replace(settings, view=str(tmp_path / "mine.npz")), tmp_path / "out")
    whole = run_labeling(settings, tmp_path / "out")
    np.testing.assert_array_equal(run.labels.label, whole.labels.label)
    (tmp_path / "mine.npz").unlink()
    assert len(RunDirectory.load(run.folder).view()) == IMAGES


def test_a_view_without_some_images_is_refused_by_their_names(simulated, tmp_path):
    settings, truth = simulated
    names = [f"image-{number:04d}.jpg" for number in range(IMAGES - 1)] + ["other.jpg"]
    write_view(tmp_path / "partial", truth, names=names)
    with pytest.raises(InvalidStore, match=r"found none of image-0119\.jpg; embed these"):
        run_labeling(replace(settings, view=str(tmp_path / "partial")), tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"method": "hard-em-dirichlet"}, r"looks at --view \(auto, anchored\), found hard-em"),
        ({"view": "dinov2"}, r"found the encoder dinov2; embed the images first"),
        ({"view": "dinov3"}, r"found 'dinov3', which is neither"),
    ],
)
def test_views_that_cannot_be_used_are_refused(simulated, tmp_path, changes, problem):
    with pytest.raises(InvalidSetting, match=problem):
        run_labeling(replace(simulated[0], **changes), tmp_path / "out")


@pytest.fixture(scope="module")
def drawings(tmp_path_factory):
    return write_drawings(tmp_path_factory.mktemp("drawn") / "images", 9)


@pytest.fixture(scope="module")
def tower(tmp_path_factory):
    return write_image_tower(tmp_path_factory.mktemp("tower") / "tower")


def test_both_encoders_embed_images_and_shots(drawings, tower, tmp_path):
    for number, name in ((0, "red circle"), (1, "blue_square"), (4, "blue_square")):
        folder = tmp_path / "shots" / name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(drawings / f"{number:03d}.png", folder / f"{number}.png")
    labels = transduce.label(
        drawings, CLASSES, encoder="shapes", view=f"onnx-image:{tower}", support=tmp_path / "shots"
    )
    run = labels.run
    assert run.summary.view == f"onnx-image:{tower}"
    assert run.store().keys() == run.view().keys()
    assert run.model().support_view.shape == (3, run.view().dimension)
    assert sorted(entry.name for entry in run.folder.iterdir() if entry.is_dir()) == [
        "features",
        "view",
    ]
    again = solve_again(run, {"002.png": "green star"})
    assert again.model().support_view.shape == (3, run.view().dimension)
    saved = RunDirectory.load(labels.save(tmp_path / "saved"))
    assert len(saved.view()) == 9
    # The same from a store, whose encoder embeds the shots, and from an encoder that is loaded.
    for view in (run.view(), load_encoder(f"onnx-image:{tower}")):
        other = transduce.label(
            drawings, CLASSES, encoder="shapes", view=view, support=tmp_path / "shots"
        )
        assert dict(other) == dict(labels)


def test_images_that_a_store_lacks_are_refused_before_any_is_opened(
    drawings, tower, tmp_path, monkeypatch
):
    photos = shutil.copytree(drawings, tmp_path / "photos")
    (photos / "torn.png").write_bytes(b"no image")
    encoder = load_encoder(f"onnx-image:{tower}")
    view = transduce.embed(photos, encoder, out=tmp_path / "view")
    labels = transduce.label(photos, CLASSES, encoder="shapes", view=view)
    assert len(labels) == 9  # what neither encoder can read is skipped by both
    shutil.copy(photos / "000.png", photos / "new.png")
    monkeypatch.setattr("transduce.labeling.pipeline.Embedder", None)
    with pytest.raises(InvalidStore, match=r"found none of new\.png; embed these"):
        transduce.label(photos, CLASSES, encoder="shapes", view=tmp_path / "view")


def test_an_encoder_of_images_alone_cannot_name_classes(drawings, tower):
    with pytest.raises(transduce.TransduceError, match="images only; take a CLIP"):
        transduce.label(drawings, CLASSES, encoder=f"onnx-image:{tower}")


def test_the_hint_comes_only_where_dinov2_is_at_hand(simulated, tower, tmp_path, monkeypatch):
    settings = LabelSettings(source="photos", classes=NAMES, prompts=NAMES)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert view_hint(settings) == ""
    hub = ENCODERS["dinov2"].hub
    folder = tmp_path / "hub" / "models--onnx-community--dinov2-small" / "snapshots" / hub.revision
    shutil.copytree(tower, folder)
    assert "--view dinov2" in view_hint(settings)
    for used in ({"view": "dinov2"}, {"method": "zero-shot"}, {"features": "feats"}):
        assert view_hint(replace(settings, **used)) == ""


def test_a_single_image_is_labeled_without_its_view(tmp_path):
    truth = write_simulated(tmp_path / "feats", images=1)
    write_view(tmp_path / "view", truth)
    settings = LabelSettings(
        source="",
        classes=NAMES,
        prompts=NAMES,
        encoder="",
        features=str(tmp_path / "feats"),
        view=str(tmp_path / "view"),
    )
    summary = run_labeling(settings, tmp_path / "out").summary
    assert (summary.method, summary.view) == ("zero-shot", "")
