"""Images scored for their likeliest classes alone, against all classes."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.methods.anchored.test_anchored import simulated, task_of
from tests.methods.anchored.test_chunks import Kept
from transduce import Anchored
from transduce.methods.anchored import start as anchored_start
from transduce.methods.anchored.batch import ArrayRows
from transduce.methods.anchored.columns import (
    AllClasses,
    LikeliestClasses,
    largest,
    likeliest_classes,
)


@pytest.fixture
def candidates(monkeypatch):
    def of(count):
        monkeypatch.setattr(anchored_start, "MOST_DENSE", 0)
        monkeypatch.setattr(anchored_start, "CANDIDATES", count)

    return of


@pytest.mark.parametrize("shots", [0, 30])
def test_all_classes_as_candidates_are_the_same_answer(candidates, shots):
    rows, texts, truth = simulated(0, images=120, classes=30, present=6)
    options = {"support": rows[:shots], "support_labels": truth[:shots]} if shots else {}
    task = task_of(rows[shots:], texts, **options)
    whole = Anchored().predict(task)
    candidates(30)
    parts = Anchored().predict(task)
    np.testing.assert_array_equal(parts.labels, whole.labels)
    np.testing.assert_allclose(parts.probabilities, whole.probabilities, atol=1e-3)


def test_few_candidates_lose_little(candidates):
    rows, texts, truth = simulated(1, images=200, classes=80, present=8)
    whole = Anchored().predict(task_of(rows, texts)).labels
    candidates(24)
    few = Anchored().predict(task_of(rows, texts)).labels
    assert (few == whole).mean() > 0.97
    assert (few == truth).mean() > (whole == truth).mean() - 0.02


def test_a_stopped_batch_with_candidates_goes_on(candidates):
    candidates(10)
    rows, texts, _ = simulated(2, images=80, classes=40, present=5)
    whole = Anchored().solve(ArrayRows.of(rows), texts)
    kept = Kept(7)
    with pytest.raises(KeyboardInterrupt):
        Anchored().solve(ArrayRows.of(rows), texts, checkpoint=kept)
    resumed = Anchored().solve(ArrayRows.of(rows), texts, checkpoint=kept)
    np.testing.assert_array_equal(resumed.classes, whole.classes)
    np.testing.assert_array_equal(resumed.probabilities, whole.probabilities)


def test_columns_of_some_classes_are_those_of_all():
    random = np.random.default_rng(0)
    rows, table = random.normal(size=(9, 6)), random.normal(size=(20, 6))
    rows, table = rows.astype(np.float32), table.astype(np.float32)
    chosen = likeliest_classes(rows, table, 7)
    np.testing.assert_array_equal(
        chosen, np.sort(np.argsort(-(rows @ table.T), axis=1)[:, :7], axis=1)
    )
    some, every, part = LikeliestClasses(chosen, 20), AllClasses(20), slice(2, 8)
    places = sp.random_array((9, 20), density=0.3, rng=random, dtype=np.float32, format="csr")
    vector = table[:, 0]
    scores, whole = (
        columns.products(rows, columns.table(table, 9), part) for columns in (some, every)
    )
    here = slice(places.indptr[part.start], places.indptr[part.stop])
    for columns, array in ((some, scores), (every, whole)):
        array += columns.of(vector, part)
        columns.add(array, places, places.data[here], part)
    np.testing.assert_allclose(scores, np.take_along_axis(whole, chosen[part], 1), atol=1e-5)
    zero = np.zeros_like(whole)
    np.put_along_axis(zero, chosen[part], scores, 1)
    weights = random.random(6, dtype=np.float32)
    for columns, array in ((some, scores), (every, zero)):
        np.testing.assert_allclose(columns.mass(array, weights, part), weights @ zero, atol=1e-5)
    np.testing.assert_array_equal(some.taken(scores, places, part), every.taken(zero, places, part))


@pytest.mark.parametrize(("width", "count"), [(50, 7), (20, 20), (1000, 64), (333, 3)])
def test_largest_are_those_of_a_sort_and_the_lower_of_equals(width, count):
    scores = np.random.default_rng(width).normal(size=(30, width)).astype(np.float32)
    scores[5:20] = np.round(scores[5:20])  # many equals
    scores[20] = 0.0
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(largest(scores, count), np.sort(order, axis=1))
