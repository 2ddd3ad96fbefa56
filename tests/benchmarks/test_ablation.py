"""What the ablation replaces is put back, and its tables say what was measured."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import ablation, ablation_ideas, ablation_text_ideas
from tests.methods.anchored.test_anchored import simulated, task_of
from transduce import Anchored
from transduce.methods.anchored.batch import ArrayRows
from transduce.methods.anchored.entries import Entries, StoredRows
from transduce.methods.anchored.start import bare_batch, prepared
from transduce.methods.anchored.steps import AnchoredState, Assignments, Moments
from transduce.simplex.passes import in_threads

CHANGES = {
    variant.change: variant.replaced()
    for variant in [*ablation.PARTS, *ablation.IDEAS]
    if variant.replaced() is not None
}


@pytest.fixture(scope="module")
def task():
    rows, texts, _ = simulated(4, images=40, classes=20, present=9, spread=2.0)
    return task_of(rows, texts)


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"groups_renamed"}))  # it has its own
def test_a_change_holds_inside_and_is_gone_after(task, name):
    before = Anchored().predict(task)
    with ablation_ideas.changed(CHANGES[name]):
        inside = Anchored().predict(task)
    after = Anchored().predict(task)
    assert np.isfinite(inside.probabilities).all()
    assert np.abs(inside.probabilities - before.probabilities).max() > 1e-3
    np.testing.assert_array_equal(after.probabilities, before.probabilities)


def test_a_group_under_a_wrong_name_gets_the_name_that_the_text_likes():
    rows, texts, _ = simulated(3, images=48, classes=6, present=3, spread=0.3)
    method = Anchored(text_scale=100.0)
    batch = prepared(bare_batch(method, ArrayRows.of(rows), texts, None), 3, in_threads)
    moments = Moments.of(batch, in_threads)
    state = AnchoredState.first(method, batch, moments, in_threads).with_prior()
    state = state.assigned(with_sums=True)
    found = state.assignments
    turned = np.roll(np.arange(6), 1)  # every group under the name of another
    z = found.z.whole()[:, turned]
    wrong = Assignments(
        StoredRows((Entries.of(z),)), found.mass[turned], found.present[turned], found.sums[turned]
    )
    named = ablation_text_ideas._renamed(replace(state, assignments=wrong))
    large = found.mass >= ablation_text_ideas.FEWEST_RENAMED
    assert large.sum() >= 3
    assert (named.mass[large] > 0.9 * found.mass[large]).all()
    assert named.mass.sum() == pytest.approx(48)
    np.testing.assert_allclose(named.z.whole().sum(0), named.mass, atol=0.01)


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
