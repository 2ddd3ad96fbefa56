import numpy as np
import pytest
from scipy.stats import ttest_rel

from transduce.benchmark.metrics import (
    METRICS,
    compare_paired,
    mean_and_interval,
    mean_per_class_recall,
)
from transduce.methods import METHODS
from transduce.task import Task


def test_recall_counts_classes_alike_and_only_those_present():
    truth = np.array([0, 0, 0, 0, 2, 2])
    labels = np.array([0, 0, 0, 1, 2, 0])
    task = Task(query=np.eye(3)[labels], zero_shot=np.eye(3)[labels])
    prediction = METHODS["zero-shot"]().predict(task)
    expected = (3 / 4 + 1 / 2) / 2
    assert mean_per_class_recall(prediction, truth, task) == pytest.approx(expected)


def test_interval_covers_the_mean_as_often_as_it_says():
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        mean, interval = mean_and_interval(list(generator.normal(0.7, 0.1, 100)))
        hits += abs(mean - 0.7) < interval
    assert 0.92 < hits / 400 < 0.98


def test_comparison_is_students_paired_test():
    generator = np.random.default_rng(1)
    first = generator.normal(0.70, 0.1, 50)
    second = first - generator.normal(0.01, 0.03, 50)
    found = compare_paired(list(first), list(second))
    expected = ttest_rel(first, second)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.difference == pytest.approx((first - second).mean())
    assert found.wins + found.losses == 50


def test_equal_answers_are_not_significant_and_a_constant_gap_is():
    assert not compare_paired([0.5, 0.7], [0.5, 0.7]).significant
    assert compare_paired([0.5, 0.75], [0.25, 0.5]).significant


def test_calibration_is_the_distance_of_probability_and_accuracy_over_pooled_bins():
    generator = np.random.default_rng(2)
    metric = METRICS["calibration"]
    values, confidence, right = [], [], []
    for _ in range(5):
        rows = generator.dirichlet(np.full(4, 0.5), size=40)
        task = Task(query=rows, zero_shot=rows)
        truth = generator.integers(0, 4, 40)
        prediction = METHODS["zero-shot"]().predict(task)
        values.append(metric.of_task(prediction, truth, task))
        confidence.extend(rows.max(1))
        right.extend(rows.argmax(1) == truth)
    confidence, right = np.array(confidence), np.array(right)
    bins = np.minimum((15 * confidence).astype(int), 14)
    expected = sum(
        (bins == b).mean() * abs(confidence[bins == b].mean() - right[bins == b].mean())
        for b in np.unique(bins)
    )
    assert metric.of_run(values) == pytest.approx(expected, abs=1e-4)


def test_calibration_of_certain_answers_is_their_error():
    rows = np.eye(4)
    task = Task(query=rows, zero_shot=rows)
    prediction = METHODS["zero-shot"]().predict(task)
    metric = METRICS["calibration"]
    for truth, error in (([0, 1, 2, 3], 0.0), ([0, 1, 2, 0], 0.25)):
        value = metric.of_task(prediction, np.array(truth), task)
        assert metric.of_run([value]) == pytest.approx(error)
