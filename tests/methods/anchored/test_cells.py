"""Neighbors found in cells against all pairs."""

import numpy as np
import pytest

from tests.methods.anchored.test_anchored import simulated, task_of
from transduce import Anchored
from transduce.methods.anchored import cells
from transduce.methods.anchored import start as anchored_start
from transduce.methods.anchored.batch import AnchoredBatch, ArrayRows, KnownRows
from transduce.methods.anchored.start import bare_batch, prepared
from transduce.methods.neighbors import nearest_neighbors
from transduce.simplex.passes import in_threads


@pytest.fixture
def small_cells(monkeypatch):
    monkeypatch.setattr(cells, "EXACT_UP_TO", 0)
    monkeypatch.setattr(cells, "CELL_ROWS", 20)
    monkeypatch.setattr(cells, "CANDIDATES", 80)


def batch_of(rows, shots=0):
    queries, known = rows[: len(rows) - shots], rows[len(rows) - shots :]
    source = ArrayRows.of(queries)
    labels = np.zeros(shots, np.int64)
    return AnchoredBatch(source, rows[:2], known, known, labels, None, source.unit.mean(0))


@pytest.mark.parametrize("shots", [0, 30])
def test_most_true_neighbors_are_found_and_the_share_is_said(small_cells, shots):
    rows, _, _ = simulated(0, images=400, classes=12, present=12, spread=0.5)
    found, recall = cells.batch_neighbors(batch_of(rows, shots), 3, in_threads)
    true = nearest_neighbors(rows, rows, 3, skip_self=True)
    assert not (found.indices == np.arange(len(rows))[:, np.newaxis]).any()
    given = np.take_along_axis(rows @ rows.T, found.indices, 1)
    np.testing.assert_allclose(found.cosines, given, atol=1e-5)
    share = (found.cosines >= true.cosines[:, -1:] - 1e-6).mean()
    assert share > 0.8
    assert abs(recall - share) < 0.05


def test_all_pairs_of_few_images_are_compared():
    rows, _, _ = simulated(1, images=100)
    found, recall = cells.batch_neighbors(batch_of(rows), 3, in_threads)
    assert recall == 1.0
    np.testing.assert_array_equal(
        found.indices, nearest_neighbors(rows, rows, 3, skip_self=True).indices
    )


def test_copies_of_one_image_are_neighbors_of_each_other(small_cells):
    rows = np.repeat(np.eye(1, 8, dtype=np.float32), 300, 0)
    found, recall = cells.batch_neighbors(batch_of(rows), 3, in_threads)
    assert (found.cosines == 1.0).all()
    assert recall == 1.0


def test_labels_with_neighbors_from_cells(small_cells):
    rows, texts, truth = simulated(2, images=300, classes=20, present=6)
    labels = Anchored().predict(task_of(rows, texts)).labels
    assert (labels == truth).mean() > 0.9


@pytest.mark.parametrize("shots", [0, 25])
def test_of_many_classes_neighbors_are_looked_for_in_the_likeliest(monkeypatch, shots):
    monkeypatch.setattr(cells, "EXACT_UP_TO", 0)
    monkeypatch.setattr(anchored_start, "MOST_DENSE", 0)
    monkeypatch.setattr(anchored_start, "CANDIDATES", 12)
    rows, texts, truth = simulated(4, images=200, classes=60, present=60)
    queries, known = rows[shots:], KnownRows.of(rows[:shots], truth[:shots])
    batch = bare_batch(Anchored(), ArrayRows.of(queries), texts, known if shots else None)
    with_candidates = prepared(batch, 3, in_threads)
    every = np.concatenate([queries, rows[:shots]])
    true = nearest_neighbors(every, every, 3, skip_self=True)
    found, recall = cells.batch_neighbors(with_candidates, 3, in_threads)
    share = (found.cosines >= true.cosines[:, -1:] - 1e-6).mean()
    assert share > 0.8
    assert abs(recall - share) < 0.1
    assert with_candidates.neighbor_recall == recall
