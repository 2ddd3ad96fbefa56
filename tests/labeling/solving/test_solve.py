"""Solving batch by batch."""

import numpy as np
import pytest

from tests.labeling.stores import simulated_problem
from transduce.labeling.problem import BestClasses, Shots, dense, part_of
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.solving import large_mixtures, rows
from transduce.labeling.solving.solve import memory_needed, solve
from transduce.mixtures import queries
from transduce.simplex.passes import chunks_of


def solved(problem, progress=lambda images: None):
    return solve(problem, np.empty((len(problem.store), problem.n_classes), np.float32), progress)


def test_batches_are_random_parts_of_the_whole(tmp_path):
    problem, _ = simulated_problem(tmp_path, batch=25, seed=3)
    batches = problem.batches()
    assert [len(rows) for rows in batches] == [20, 20, 20]
    assert sorted(np.concatenate(batches).tolist()) == list(range(60))
    assert all((np.diff(rows) > 0).all() for rows in batches)
    assert not np.array_equal(batches[0], np.arange(20))
    again, _ = simulated_problem(tmp_path / "same", batch=25, seed=3)
    np.testing.assert_array_equal(np.concatenate(again.batches()), np.concatenate(batches))


def test_memory_does_not_grow_beyond_a_batch(tmp_path):
    problem, _ = simulated_problem(tmp_path, batch=25)
    one = memory_needed(25, 12, problem.settings)
    assert memory_needed(10**6, 12, problem.settings) == one


def test_corrected_rows_keep_their_label_and_the_others_are_solved(tmp_path):
    problem, _ = simulated_problem(tmp_path, fixed={3: 5, 8: UNKNOWN})
    images = []
    solution = solved(problem, images.append)
    assert (solution.label[3], solution.label[8]) == (5, UNKNOWN)
    assert solution.probabilities[3, 5] == 1.0
    np.testing.assert_allclose(solution.probabilities[8], 1 / 12)
    np.testing.assert_allclose(solution.probabilities.sum(1), 1.0, atol=1e-5)
    assert solution.batches[0].images == 58
    assert images == [60]


def test_no_shots_and_more_shots():
    two = Shots(np.eye(2, dtype=np.float32), np.array([0, 1]))
    assert len(Shots.none(2).joined(two)) == 2
    assert two.joined(two).labels.tolist() == [0, 1, 0, 1]


def test_rows_that_stay_on_disk_have_the_same_answer_to_the_bit(tmp_path, monkeypatch):
    problem, _ = simulated_problem(tmp_path, fixed={3: 5})
    kept = solved(problem)
    monkeypatch.setattr(rows, "KEPT_BYTES", 0)
    stored = solve(problem, BestClasses.empty(len(problem.store), problem.n_classes))
    np.testing.assert_array_equal(stored.label, kept.label)
    for part in (slice(0, 7), slice(7, 60)):
        best = part_of(stored.probabilities, part)
        whole = dense(best.classes, best.probabilities, problem.n_classes)
        np.testing.assert_array_equal(whole, kept.probabilities[part])
    np.testing.assert_array_equal(stored.top, kept.top)
    np.testing.assert_allclose(stored.entropy, kept.entropy, atol=1e-6)
    np.testing.assert_array_equal(stored.doubt, kept.doubt)


def test_large_runs_keep_the_best_classes(tmp_path):
    problem, _ = simulated_problem(tmp_path, method="em-dirichlet")
    kept, best = solved(problem), BestClasses.empty(60, 12)
    few = BestClasses(best.classes[:, :4].copy(), best.probabilities[:, :4].copy(), 12)
    solution = solve(problem, few)
    np.testing.assert_array_equal(solution.label, kept.label)
    np.testing.assert_array_equal(few.classes[:, 0], kept.label)
    largest = -np.sort(-kept.probabilities, axis=1)[:, :4]
    np.testing.assert_array_equal(few.probabilities, largest)


@pytest.mark.parametrize("method", ["em-dirichlet", "hard-em-dirichlet", "kl-k-means"])
@pytest.mark.parametrize("fixed", [{}, {3: 5, 8: 1}])
def test_large_batches_of_a_mixture_have_the_labels_of_a_task_in_memory(
    method, fixed, tmp_path, monkeypatch
):
    problem, _ = simulated_problem(tmp_path, method=method, fixed=fixed)
    task = solved(problem)
    monkeypatch.setattr(large_mixtures, "IN_MEMORY", 0)
    monkeypatch.setattr(queries, "chunks_of", lambda size: chunks_of(size, 7))
    kept = solved(problem)
    monkeypatch.setattr(large_mixtures, "KEPT_BYTES", 0)
    monkeypatch.setattr(rows, "KEPT_BYTES", 0)
    best = BestClasses.empty(60, 12)
    few = BestClasses(best.classes[:, :4].copy(), best.probabilities[:, :4].copy(), 12)
    stored = solve(problem, few)
    for large in (kept, stored):
        np.testing.assert_array_equal(large.label, task.label)
        assert large.top == pytest.approx(task.top, abs=1e-5)
        assert large.entropy == pytest.approx(task.entropy, abs=1e-5)
        np.testing.assert_array_equal(large.zero_shot_label, task.zero_shot_label)
        assert large.batches[0].iterations == task.batches[0].iterations
        assert large.batches[0].objective == pytest.approx(task.batches[0].objective)
        assert large.models[0].parameters == pytest.approx(task.models[0].parameters, rel=1e-4)
    assert kept.probabilities == pytest.approx(task.probabilities, abs=1e-5)
    np.testing.assert_array_equal(stored.label, kept.label)
    np.testing.assert_array_equal(few.probabilities[:, :2], kept.top)


def test_memory_of_a_large_mixture_does_not_grow_with_image_x_class(tmp_path):
    problem, _ = simulated_problem(tmp_path, method="em-dirichlet")
    million = memory_needed(10**6, 1000, problem.settings)
    assert million < memory_needed(10**6, 10, problem.settings) + 4e8
