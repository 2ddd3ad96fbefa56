"""From a feature store to a run directory, and again."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.labeling.stores import NAMES, write_simulated, write_truth
from transduce.errors import (
    EncoderMismatch,
    InvalidFile,
    InvalidSetting,
    MissingExtra,
    UnknownName,
)
from transduce.features.layout import META
from transduce.labeling import pipeline
from transduce.labeling.pipeline import run_labeling, solve_again
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.settings import UNKNOWN, LabelSettings, read_settings
from transduce.methods import METHODS
from transduce.task import Task


@pytest.fixture
def few_present(tmp_path):
    """120 images of 3 of 12 classes; returns (settings, truth)."""
    truth = write_simulated(tmp_path / "feats", present=[1, 4, 7])
    settings = LabelSettings(
        source="",
        classes=NAMES,
        prompts=NAMES,
        encoder="",
        features=str(tmp_path / "feats"),
        truth=str(write_truth(tmp_path / "truth.csv", truth)),
    )
    return settings, truth


def test_the_batch_fixes_zero_shot_where_few_classes_are_present(few_present, tmp_path):
    settings, truth = few_present
    run = run_labeling(settings, tmp_path / "out")
    summary, evaluation = run.summary, run.summary.evaluation
    assert summary.method == "anchored"
    assert 3 <= summary.classes_present <= 6
    assert summary.estimated
    assert evaluation.accuracy == pytest.approx((run.labels.label == truth).mean())
    assert evaluation.accuracy > evaluation.zero_shot_accuracy
    assert evaluation.fixed - evaluation.broken == round(evaluation.gain * len(truth))
    assert evaluation.accuracy_interval[0] < evaluation.accuracy < evaluation.accuracy_interval[1]
    assert sum(entry.joint for entry in summary.classes) == 120


def test_probabilities_carry_the_labels(few_present, tmp_path):
    run = run_labeling(few_present[0], tmp_path / "out")
    probabilities = run.probabilities()
    assert probabilities.shape == (120, 12)
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(probabilities.argmax(1), run.labels.label)
    np.testing.assert_allclose(probabilities.max(1), run.labels.score)
    ordered = np.sort(probabilities, 1)
    np.testing.assert_allclose(ordered[:, -1] - ordered[:, -2], run.labels.margin, atol=1e-6)


@pytest.mark.parametrize("method", ["hard-em-dirichlet", "em-dirichlet", "kl-k-means"])
@pytest.mark.filterwarnings("ignore::transduce.errors.ConvergenceWarning")
def test_a_method_asked_for_gives_its_own_labels(few_present, tmp_path, method):
    settings = replace(few_present[0], method=method, classes_present=4)
    run = run_labeling(settings, tmp_path / "out")
    model, store = run.model(), run.store()
    task = Task.from_embeddings(store.embeddings(), model.class_embeddings)
    wanted = METHODS[method](**({"classes_present": 4} if "em" in method else {})).predict(task)
    np.testing.assert_array_equal(run.labels.label, wanted.labels)
    assert run.summary.choice == "as asked"
    assert len(model.batches) == 1


def test_the_same_settings_give_the_same_bytes(few_present, tmp_path):
    settings = replace(few_present[0], batch=50, seed=3)
    first = run_labeling(settings, tmp_path / "out")
    again = run_labeling(read_settings(first.folder / "run.toml"), tmp_path / "elsewhere")
    assert len(first.summary.batches) == 3
    assert (again.folder / "labels.csv").read_bytes() == (first.folder / "labels.csv").read_bytes()


def test_runs_are_numbered_and_whole(few_present, tmp_path, monkeypatch):
    settings, _ = few_present
    assert run_labeling(settings, tmp_path / "out").folder.name == "transduce-001"
    assert run_labeling(settings, tmp_path / "out").folder.name == "transduce-002"

    def broken(*arguments):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(pipeline, "write_run", broken)
    with pytest.raises(RuntimeError):
        run_labeling(settings, tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["transduce-001", "transduce-002"]


def test_what_zero_shot_is_sure_of_stays(tmp_path):
    write_simulated(tmp_path / "feats", images=20, noise=0.03, spread=0.16)
    settings = LabelSettings(source="", classes=NAMES, prompts=NAMES, encoder="",
                             features=str(tmp_path / "feats"))  # fmt: skip
    run = run_labeling(settings, tmp_path / "out")
    assert run.summary.changed == 0


def test_all_classes_present_are_not_merged(tmp_path):
    truth = write_simulated(tmp_path / "feats", images=600, noise=0.12)
    settings = LabelSettings(source="", classes=NAMES, prompts=NAMES, encoder="",
                             features=str(tmp_path / "feats"))  # fmt: skip
    run = run_labeling(settings, tmp_path / "out")
    assert run.summary.classes_present == 12
    zero_shot = (run.labels.zero_shot_label == truth).mean()
    assert (run.labels.label == truth).mean() >= zero_shot
    assert run.summary.batches[0].estimates["classes_present"] == pytest.approx(12, abs=0.5)


def test_a_collapsed_answer_is_said(tmp_path):
    write_simulated(tmp_path / "feats", images=300, noise=0.12)
    settings = LabelSettings(source="", classes=NAMES, prompts=NAMES, encoder="",
                             features=str(tmp_path / "feats"), method="hard-em-dirichlet",
                             classes_present=1)  # fmt: skip
    run = run_labeling(settings, tmp_path / "out")
    assert any("zero_shot_label" in warning for warning in run.summary.warnings)
    assert len(np.unique(run.labels.label)) < 12


def test_corrections_are_kept_and_help(few_present, tmp_path):
    settings, truth = few_present
    run = run_labeling(settings, tmp_path / "out")
    wrong = np.flatnonzero(run.labels.label != truth)[:10]
    corrections = {run.labels.file_name[row]: NAMES[truth[row]] for row in wrong}
    corrections[run.labels.file_name[0]] = "unknown"
    again = solve_again(run, corrections)
    assert again.folder == run.folder.with_name("transduce-002")
    assert (again.folder / "report.html").is_file()
    assert again.labels.corrected.sum() == len(corrections)
    np.testing.assert_array_equal(again.labels.label[wrong], truth[wrong])
    assert again.labels.label[0] == UNKNOWN
    assert not again.labels.needs_review[again.labels.corrected].any()
    assert again.corrections() == corrections
    others = ~again.labels.corrected
    before = (run.labels.label[others] == truth[others]).mean()
    assert (again.labels.label[others] == truth[others]).mean() >= before
    assert again.summary.evaluation.images == others.sum()
    same = run_labeling(read_settings(again.folder / "run.toml"), tmp_path / "elsewhere")
    assert (same.folder / "labels.csv").read_bytes() == (again.folder / "labels.csv").read_bytes()
    third = solve_again(again, {run.labels.file_name[0]: NAMES[1]})
    assert third.labels.corrected.sum() == len(corrections)
    assert third.labels.label[0] == 1


def test_corrections_that_do_not_fit_are_refused(few_present, tmp_path):
    run = run_labeling(few_present[0], tmp_path / "out")
    with pytest.raises(InvalidFile, match=r"did you mean 'image-0001.jpg'"):
        solve_again(run, {"image-0001.jpeg": NAMES[0]})
    with pytest.raises(UnknownName, match="kind a"):
        solve_again(run, {"image-0001.jpg": "kind"})
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["transduce-001"]


def test_zero_shot_takes_corrections_of_some_classes(few_present, tmp_path):
    settings, truth = few_present
    run = run_labeling(replace(settings, method="zero-shot"), tmp_path / "out")
    again = solve_again(run, {run.labels.file_name[0]: NAMES[truth[0]]})
    np.testing.assert_array_equal(again.labels.label[1:], run.labels.label[1:])
    assert again.labels.label[0] == truth[0]


def test_all_images_corrected(few_present, tmp_path):
    settings, truth = few_present
    run = run_labeling(settings, tmp_path / "out")
    corrections = {name: NAMES[k] for name, k in zip(run.labels.file_name, truth, strict=True)}
    again = solve_again(run, corrections)
    assert (again.labels.label == truth).all()
    assert again.summary.method == "corrections"


def test_one_image_is_zero_shot_and_says_so(tmp_path):
    write_simulated(tmp_path / "feats", images=1)
    settings = LabelSettings(source="", classes=NAMES, prompts=NAMES, encoder="",
                             features=str(tmp_path / "feats"))  # fmt: skip
    run = run_labeling(settings, tmp_path / "out")
    assert run.summary.method == "zero-shot"
    assert "single image" in run.summary.choice
    assert any("fewer images (1) than classes (12)" in text for text in run.summary.warnings)


def test_min_score_and_allow_unknown(few_present, tmp_path):
    settings, _ = few_present
    run = run_labeling(replace(settings, min_score=0.9), tmp_path / "out")
    low = run.labels.score < 0.9
    assert low.any()
    np.testing.assert_array_equal(run.labels.label == UNKNOWN, low)
    assert run.summary.unknown == low.sum()
    text = (run.folder / "labels.csv").read_text()
    assert ",unknown," in text
    with pytest.raises(InvalidSetting, match="no class called 'unknown'"):
        run_labeling(replace(settings, classes=(*NAMES[:-1], "unknown"), min_score=0.5), tmp_path)


def test_features_of_another_encoder_are_refused(few_present, tmp_path):
    settings, _ = few_present
    two = ("red circle", "blue circle")
    with pytest.raises(EncoderMismatch, match="simulated"):
        run_labeling(
            replace(settings, encoder="shapes", classes=two, prompts=two, truth=""), tmp_path
        )


def test_a_truth_of_other_names_is_refused(few_present, tmp_path):
    settings, _ = few_present
    (tmp_path / "other.csv").write_text("file_name,label\nx.jpg,kind a\n")
    with pytest.raises(InvalidFile, match="found none of their names"):
        run_labeling(replace(settings, truth=str(tmp_path / "other.csv")), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_is_described_by_its_files(few_present, tmp_path):
    run = run_labeling(few_present[0], tmp_path / "out")
    assert sorted(path.name for path in run.folder.iterdir()) == [
        "classes.json", "labels.csv", "labels.parquet", "model.safetensors", "run.toml",
        "skipped.csv", "summary.json",
    ]  # fmt: skip
    described = json.loads((run.folder / "classes.json").read_text())
    assert described["labels"] == list(NAMES)
    assert described["encoder"]["encoder"] == "simulated"
    loaded = RunDirectory.load(run.folder)
    assert loaded.summary == run.summary
    assert loaded.store().folder.joinpath(META).exists()
    header = (run.folder / "labels.csv").read_text().splitlines()[0]
    assert header == (
        "file_name,label,score,margin,entropy,doubt,zero_shot_label,zero_shot_score,changed,"
        "needs_review,reason,duplicate_of"
    )


def test_what_is_compiled_is_begun_early_and_refused_before_any_work(
    few_present, tmp_path, monkeypatch
):
    settings = replace(few_present[0], method="em-dirichlet")
    assert list(run_labeling(settings, tmp_path / "out").summary.seconds) == [
        "classes", "embedding", "compiling", "solving"
    ]  # fmt: skip
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "transduce.simplex.kernels")
    monkeypatch.setattr(pipeline, "embed_classes", None)
    with pytest.raises(MissingExtra, match=r'pip install "transduce\[dirichlet\]"'):
        run_labeling(settings, tmp_path / "out")
    monkeypatch.undo()
    assert "compiling" not in run_labeling(few_present[0], tmp_path / "out").summary.seconds
