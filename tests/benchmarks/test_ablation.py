"""What the ablation replaces is put back, and its tables say what was measured."""

import numpy as np
import pytest

from benchmarks import ablation, ablation_ideas
from tests.methods.anchored.test_anchored import simulated, task_of
from transduce import Anchored

CHANGES = [variant.change for variant in [*ablation.PARTS, *ablation.IDEAS] if variant.change]
CHANGES.remove("averaged")


@pytest.fixture(scope="module")
def task():
    rows, texts, _ = simulated(3, images=30, classes=20, present=9, spread=1.6)
    return task_of(rows, texts)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_holds_inside_and_is_gone_after(task, name):
    before = Anchored().predict(task)
    with ablation_ideas.changed(getattr(ablation_ideas, name)):
        inside = Anchored().predict(task)
    after = Anchored().predict(task)
    assert np.isfinite(inside.probabilities).all()
    assert np.abs(inside.probabilities - before.probabilities).max() > 1e-3
    np.testing.assert_array_equal(after.probabilities, before.probabilities)


def test_the_mean_of_settings_is_a_prediction(task):
    answer = ablation_ideas.Averaged().predict(task)
    np.testing.assert_allclose(answer.probabilities.sum(1), 1, atol=1e-4)


def test_calibration_error_pools_the_images_of_a_regime():
    right = np.array([True, True, False, False])
    gaps = ablation.confidence_gaps(right, np.array([0.95, 0.95, 0.55, 0.55]))
    cells = {
        f"{column}; {regime}": {"gaps": gaps, "images": 4}
        for column in ("A", "B")
        for regime in ablation.BATCHES
    }
    assert ablation.calibration_error(cells) == pytest.approx(100 * (0.1 + 1.1) / 4)


def test_tables_have_differences_by_regime_and_without_each_set():
    def row(name, gain):
        cells = {
            f"{column}; {regime}": {
                "accuracy": 80.0 + (gain if column == "A" else 0.0),
                "zero-shot": 81.0, "images": 100, "gaps": [3.0],
            }
            for column in ("A", "B")
            for regime in ablation.BATCHES
        }  # fmt: skip
        return {"variant": name, "cells": cells}

    base, other = row("anchored", 0.0), row("other", 2.0)
    line = ablation.table([base, other], base).splitlines()[-1]
    assert line.startswith("| other | 81.00 | +1.00 |")
    assert line.endswith(f"| {len(ablation.BATCHES)} | 0 | {len(ablation.BATCHES)} | 3.0 |")
    line = ablation.left_out_table([other], base).splitlines()[-1]
    assert line == "| other | +1.00 | +0.00 | +2.00 |"
