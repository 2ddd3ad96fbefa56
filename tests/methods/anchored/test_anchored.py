"""Anchored against its definition in plain NumPy, and what its users rely on."""

import importlib.util
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.references.reference_data import load
from transduce import Anchored, InvalidSetting, InvalidTask, Task

WITH_ADDITIONS = Anchored(limit_votes=False, full_dimensions=0, shot_worth=0)
PLAIN = replace(WITH_ADDITIONS, correlation_prior=np.inf, names_foretell_means=False)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def simulated(seed, *, images=48, classes=12, present=4, width=24, spread=0.9):
    """Rows like CLIP's, the class embeddings, and the true class of each row.

    All vectors lie close together, so that cosines differ by little and 100 times them by some
    units; images of some of the classes, with a bias that all of them share.
    """
    generator = np.random.default_rng(seed)
    common, bias = generator.normal(size=(2, width)) / width**0.5
    own = unit(generator.normal(size=(classes, width)))
    chosen = generator.choice(classes, min(present, classes), replace=False)
    truth = generator.choice(chosen, images)
    noise = generator.normal(size=(images, width)) / width**0.5
    rows = 4 * common + own[truth] + spread * noise + 0.6 * bias
    return unit(rows), unit(4 * common + own), truth


def task_of(rows, texts, **options):
    return Task.from_embeddings(rows, texts, space="embedding", partial_support=True, **options)


@pytest.fixture(scope="module")
def oracle():
    """The algorithm in a hundred lines of plain NumPy, from the reference folder."""
    folder = os.environ.get("TRANSDUCE_REFERENCE")
    if not folder:
        pytest.skip("TRANSDUCE_REFERENCE is not set: no reference implementation here")
    modules = {}
    for name in ("anchored_reference", "anchored_additions"):
        spec = importlib.util.spec_from_file_location(name, Path(folder) / f"{name}.py")
        modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[name])
    return modules


@pytest.mark.parametrize(
    ("method", "name"), [(PLAIN, "anchored_reference"), (WITH_ADDITIONS, "anchored_additions")]
)
def test_labels_are_those_of_the_reference_on_fifty_tasks(oracle, method, name):
    reference = oracle[name]
    generator = np.random.default_rng(0)
    for number in range(25):
        rows, texts, _ = simulated(
            number, images=int(generator.integers(2, 90)), classes=int(generator.integers(2, 60)),
            present=2,
        )  # fmt: skip
        expected = reference.label(rows, texts)[1].argmax(1)
        np.testing.assert_array_equal(method.predict(task_of(rows, texts)).labels, expected)
    for number in range(25):
        rows, texts, truth = simulated(100 + number, images=60)
        shots = np.arange(0, 60, 5 if number % 2 else 2)
        rest = np.setdiff1d(np.arange(60), shots)
        expected = reference.label_with_shots(rows[rest], texts, rows[shots], truth[shots])
        task = task_of(rows[rest], texts, support=rows[shots], support_labels=truth[shots])
        np.testing.assert_array_equal(method.predict(task).labels, expected.argmax(1))


@pytest.mark.parametrize("name", ["whurs19_RN50", "caltech101_62_ViT-B-32"])
def test_labels_are_those_of_the_reference_on_real_features(oracle, name):
    features = load(name)
    generator = np.random.default_rng(1)
    for size in (16, 75, 400):
        rows = features.images[generator.choice(len(features.images), size, replace=False)]
        expected = oracle["anchored_reference"].label(rows, features.classes)[1].argmax(1)
        labels = PLAIN.predict(task_of(rows, features.classes)).labels
        np.testing.assert_array_equal(labels, expected)


def test_it_is_better_than_one_by_one():
    better = []
    for seed in range(6):
        rows, texts, truth = simulated(seed, images=90, classes=20, present=4, spread=1.4)
        task = task_of(rows, texts)
        labels = Anchored().predict(task).labels
        better.append((labels == truth).mean() - (task.zero_shot.argmax(1) == truth).mean())
    assert np.mean(better) > 0.05
    assert min(better) > -0.02


def test_estimates_say_what_was_found():
    rows, texts, _ = simulated(0, images=200, classes=40, present=3)
    few = Anchored().predict(task_of(rows, texts)).trace.estimates
    rows, texts, _ = simulated(0, images=200, classes=10, present=10)
    most = Anchored().predict(task_of(rows, texts)).trace.estimates
    assert few["classes_present"] < 8 < most["classes_present"]
    assert few["concentration"] < most["concentration"]
    assert few["prior_weight"] > most["prior_weight"]
    for found in (few, most):
        assert 0 < found["agreement"] <= 1
        assert 0.05 <= found["within_variance"] <= 0.98
        assert 0 < found["confidence"] < 1


def test_the_trace_says_whether_labels_still_changed():
    """The schedule is fixed: converged means that its last step changed no label."""
    settled = []
    for seed in range(8):
        rows, texts, _ = simulated(seed, images=30, spread=1.6)
        once = Anchored().predict(task_of(rows, texts))
        before = Anchored(image_steps=7).predict(task_of(rows, texts))
        changed = (once.labels != before.labels).mean()
        assert once.trace.estimates["changed"] == pytest.approx(changed)
        assert once.trace.converged == (changed == 0)
        settled.append(once.trace.converged)
    assert any(settled)


def test_images_count_more_where_they_agree_more_often_than_the_text_expects():
    """All classes present, an unsure text, clear groups of images."""
    gains, weights = [], []
    for seed in range(4):
        rows, texts, truth = simulated(seed, images=240, classes=12, present=12, spread=1.0)
        texts = unit(texts + 0.25 * np.random.default_rng(seed).normal(size=texts.shape) / 24**0.5)
        task = task_of(rows, texts)
        by_ratio = Anchored(text_scale=20).predict(task)
        measured = Anchored(text_scale=20, full_dimensions=0).predict(task)
        found = by_ratio.trace.estimates
        assert found["text_confidence"] < found["agreement"]
        weights.append(found["image_weight"] - measured.trace.estimates["image_weight"])
        gains.append((by_ratio.labels == truth).mean() - (measured.labels == truth).mean())
    assert min(weights) > 0
    assert np.mean(gains) >= 0


def test_no_more_votes_than_a_class_has_other_images():
    """Two images of each class: most of three neighbors are of other classes."""
    few, many = [], []
    for seed in range(6):
        rows, texts, truth = simulated(seed, images=600, classes=40, present=40, spread=1.2)
        pairs = np.concatenate([np.flatnonzero(truth == k)[:2] for k in range(40)])
        for kept, gains in ((pairs, few), (np.arange(600), many)):
            task = task_of(rows[kept], texts)
            limited = Anchored(bias_variance=0.01).predict(task)
            free = Anchored(bias_variance=0.01, limit_votes=False).predict(task)
            right = truth[kept]
            gains.append((limited.labels == right).mean() - (free.labels == right).mean())
    assert np.mean(few) > 0.01
    assert np.abs(many).max() == 0


def test_wrong_labels_are_not_counted_as_classes_that_are_present():
    """Each batch has 5 of 30 classes; a few wrong labels name others."""
    found, named = [], []
    for seed in range(10):
        rows, texts, truth = simulated(seed, images=150, classes=30, present=5, spread=1.6)
        answer = Anchored().predict(task_of(rows, texts))
        present = len(np.unique(truth))
        found.append(abs(answer.trace.estimates["classes_present"] - present))
        named.append(abs(len(np.unique(answer.labels)) - present))
    assert np.mean(found) <= np.mean(named)


@given(st.integers(0, 30))
def test_permuting_images_or_classes_permutes_the_answer(seed):
    rows, texts, _ = simulated(seed)
    answer = Anchored().predict(task_of(rows, texts))
    generator = np.random.default_rng(seed)
    images, classes = generator.permutation(len(rows)), generator.permutation(len(texts))
    moved = Anchored().predict(task_of(rows[images], texts[classes]))
    np.testing.assert_array_equal(classes[moved.labels], answer.labels[images])
    expected = answer.probabilities[images][:, classes]
    np.testing.assert_allclose(moved.probabilities, expected, atol=2e-3)


@given(st.integers(0, 30))
def test_a_class_that_nobody_looks_like_changes_nothing(seed):
    rows, texts, _ = simulated(seed)
    opposite = unit(-rows.mean(0, keepdims=True))
    answer = Anchored().predict(task_of(rows, texts))
    more = Anchored().predict(task_of(rows, np.concatenate([texts, opposite])))
    assert (more.labels != answer.labels).mean() <= 0.05
    assert more.probabilities[:, -1].max() < 1e-3


@given(st.integers(0, 20))
def test_duplicating_the_batch_does_not_collapse_it(seed):
    rows, texts, _ = simulated(seed)
    once = Anchored().predict(task_of(rows, texts)).labels
    twice = Anchored().predict(task_of(np.concatenate([rows, rows]), texts)).labels
    assert len(np.unique(twice)) >= len(np.unique(once)) - 2
    np.testing.assert_array_equal(twice[: len(rows)], twice[len(rows) :])


ODD = {
    "one image": (st.just(1), st.integers(2, 9)),
    "two classes": (st.integers(1, 40), st.just(2)),
    "more classes than images": (st.integers(2, 6), st.integers(20, 80)),
    "any": (st.integers(1, 30), st.integers(2, 30)),
}


@pytest.mark.parametrize("sizes", ODD.values(), ids=ODD)
@given(st.data(), st.integers(0, 1000))
def test_odd_sizes_are_finite_and_quiet(sizes, data, seed):
    images, classes = (data.draw(size) for size in sizes)
    rows, texts, _ = simulated(seed, images=images, classes=classes, present=2)
    answer = Anchored().predict(task_of(rows, texts))
    assert np.isfinite(answer.probabilities).all()
    np.testing.assert_allclose(answer.probabilities.sum(1), 1, atol=1e-4)


@given(st.integers(0, 1000), st.integers(2, 40))
def test_equal_images_get_one_label(seed, copies):
    rows, texts, _ = simulated(seed, images=1)
    same = np.repeat(rows, copies, axis=0)
    answer = Anchored().predict(task_of(same, texts))
    assert len(np.unique(answer.labels)) == 1
    assert np.isfinite(answer.probabilities).all()


@given(st.integers(0, 1000), st.integers(2, 30))
def test_exact_duplicates_are_finite_and_agree(seed, copies):
    rows, texts, _ = simulated(seed, images=3)
    answer = Anchored().predict(task_of(np.repeat(rows, copies, axis=0), texts))
    assert np.isfinite(answer.probabilities).all()
    assert (answer.labels.reshape(3, copies) == answer.labels[::copies, np.newaxis]).all()


def test_one_image_is_labeled_as_zero_shot_does():
    rows, texts, _ = simulated(5, images=1)
    task = task_of(rows, texts)
    assert Anchored().predict(task).labels == task.zero_shot.argmax(1)


def test_tempering_never_changes_a_label():
    """Probabilities come from scores without the votes, labels from all of them."""
    for seed in range(20):
        rows, texts, _ = simulated(seed, spread=1.4)
        answer = Anchored(vote_weight=50.0).predict(task_of(rows, texts))
        assert (answer.probabilities.max(1) > 0).all()
        assert len(np.unique(answer.labels)) <= 12
        best = np.sort(answer.probabilities, 1)
        assert (best[:, -1] > best[:, -2]).all()


def test_the_model_labels_new_images_like_the_batch():
    rows, texts, truth = simulated(1, images=200, classes=12, present=5)
    answer = Anchored().predict(task_of(rows[:150], texts))
    alone = (rows[150:] @ texts.T).argmax(1)
    labels = answer.model.probabilities(rows[150:]).argmax(1)
    assert (labels == truth[150:]).mean() > (alone == truth[150:]).mean()
    one_by_one = [answer.model.probabilities(row[np.newaxis]).argmax() for row in rows[150:]]
    assert one_by_one == labels.tolist()


def test_with_shots_the_confidence_is_how_often_they_are_named_rightly():
    """Names that mislead, shots that do not: labels are right, and say so."""
    generator = np.random.default_rng(0)
    rows, texts, truth = simulated(0, images=400, classes=8, present=8, spread=0.5)
    misled = unit(texts + 0.6 * generator.normal(size=texts.shape) / 24**0.5)
    shots = np.concatenate([np.flatnonzero(truth == k)[:12] for k in range(8)])
    rest = np.flatnonzero(np.isin(truth, [0, 1, 2]))
    rest = np.setdiff1d(rest, shots)
    task = task_of(rows[rest], misled, support=rows[shots], support_labels=truth[shots])
    answer = Anchored().predict(task)
    right = (answer.labels == truth[rest]).mean()
    assert right > (task.zero_shot.argmax(1) == truth[rest]).mean() + 0.1
    assert answer.trace.estimates["confidence"] == pytest.approx(right, abs=0.08)


def test_shots_of_some_classes_help():
    rows, texts, truth = simulated(2, images=140, spread=1.6)
    shots = np.flatnonzero(truth == truth[0])[:6]
    rest = np.setdiff1d(np.arange(140), shots)
    without = Anchored().predict(task_of(rows[rest], texts)).labels
    task = task_of(rows[rest], texts, support=rows[shots], support_labels=truth[shots])
    labels = Anchored().predict(task).labels
    assert (labels == truth[rest]).mean() >= (without == truth[rest]).mean()


def test_a_second_pair_of_eyes_finds_what_the_first_cannot():
    generator = np.random.default_rng(0)
    rows, texts, truth = simulated(0, images=160, spread=2.0, present=6)
    view = np.eye(12)[truth] + 0.25 * generator.normal(size=(160, 12))
    alone = Anchored().predict(task_of(rows, texts)).labels
    seen = Anchored().predict(task_of(rows, texts, view=view))
    assert (seen.labels == truth).mean() > (alone == truth).mean() + 0.1
    new = seen.model.probabilities(rows, view).argmax(1)
    assert (new == seen.labels).mean() > 0.95


def test_what_it_cannot_work_with():
    rows, texts, _ = simulated(0)
    with pytest.raises(InvalidTask, match="class_embeddings for anchored"):
        Anchored().predict(Task(query=rows, zero_shot=np.full((48, 12), 1 / 12), space="embedding"))
    with pytest.raises(InvalidSetting, match="correlation_prior"):
        Anchored(correlation_prior=0.0)
    with pytest.raises(InvalidTask, match="support_view"):
        task_of(rows, texts, view=rows, support=rows[:2], support_labels=[0, 1])


@pytest.mark.parametrize("seed", range(120))
def test_degenerate_batches_are_finite_and_quiet(seed):
    """Copies, near copies, equal names, two dimensions, shots of anything; warnings are errors."""
    generator = np.random.default_rng(seed)
    images, classes = int(generator.integers(1, 30)), int(generator.integers(2, 40))
    width, offset = int(generator.choice([2, 3, 8, 64])), generator.choice([0, 3])
    texts = generator.normal(size=(classes, width)) + offset
    if seed % 5 == 0:
        texts[1:] = texts[:1]
    centers = generator.normal(size=(int(generator.integers(1, 6)), width)) + offset
    noise = generator.choice([0, 0, 1e-7, 0.1, 1]) * generator.normal(size=(images, width))
    rows = centers[generator.integers(0, len(centers), images)] + noise
    shots = {}
    if seed % 2:
        shots["support"] = centers[generator.integers(0, len(centers), 5)]
        shots["support_labels"] = generator.integers(0, classes, 5)
    answer = Anchored().predict(task_of(rows, texts, **shots))
    assert np.isfinite(answer.probabilities).all()
    np.testing.assert_allclose(answer.probabilities.sum(1), 1, atol=1e-4)
    assert np.isfinite(answer.model.probabilities(rows)).all()
