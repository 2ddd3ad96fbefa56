"""Wrong labels are taken apart as the table says."""

import numpy as np
import pytest

from benchmarks import lost
from tests.methods.anchored.test_anchored import simulated, task_of
from transduce import Anchored
from transduce.benchmark.episodes import Episode
from transduce.methods.neighbors import mutual_graph


def test_a_class_is_misnamed_if_most_of_its_images_have_one_other_name():
    truth = np.repeat([0, 1, 2], [6, 5, 3])
    labels = np.array([3, 3, 3, 3, 0, 0, 1, 1, 1, 3, 3, 3, 3, 3])  # the last three are too few
    text = np.zeros((14, 4), np.float32)
    text[:6, 0] = 1.0
    assert lost.wrong_names(truth, labels, text) == (1, 0)
    text[:6, 3] = 2.0
    assert lost.wrong_names(truth, labels, text) == (1, 1)


def test_neighbors_of_one_class_are_found_and_estimated():
    rows = np.repeat(np.eye(3), 8, axis=0) + np.random.default_rng(0).normal(0, 0.01, (24, 3))
    graph = mutual_graph(rows / np.linalg.norm(rows, axis=1, keepdims=True), 3)
    truth = np.repeat([0, 1, 2], 8)
    assert lost.shared_classes(graph, truth, np.eye(3)[truth]) == pytest.approx((1.0, 1.0))
    mixed = np.arange(24) % 3
    true, estimated = lost.shared_classes(graph, mixed, np.eye(3)[mixed])
    assert true == pytest.approx(estimated)
    assert true < 0.6


def test_steps_from_the_truth_keep_most_of_it_and_leave_names_that_the_text_denies():
    rows, texts, labels = simulated(6, images=60, classes=20, present=9, spread=1.6)
    task = task_of(rows, texts)
    kept = (lost.steps_from_truth(task, labels) == labels).mean()
    assert kept > (Anchored().predict(task).labels == labels).mean() + 0.05
    turned = np.roll(np.arange(20), 7)[labels]
    assert (lost.steps_from_truth(task, turned) == turned).mean() < 0.1


def test_the_parts_of_a_batch_add_up():
    rows, texts, labels = simulated(3, images=60, classes=20, present=9, spread=1.6)
    found = lost.examine(Episode(task_of(rows, texts), labels))
    assert found["anchored"] + found["absent"] + found["present"] == pytest.approx(100.0)
    assert found["here"] == len(np.unique(labels))
    assert found["without shots"] == found["anchored"]
    assert found["classes known"] >= found["zero-shot"]
