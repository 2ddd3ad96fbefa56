"""The columns of the labels, and why an image should be looked at."""

import numpy as np

from tests.labeling.solving.test_solve import solved
from tests.labeling.stores import simulated_problem
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.table import (
    CLOSE_CALL,
    conflicting,
    far_away,
    in_tiny_classes,
    label_table,
    reasons_of,
)


def test_low_scores_become_unknown_but_not_corrections(tmp_path):
    problem, _ = simulated_problem(tmp_path, fixed={0: 2}, min_score=1.0)
    solution = solved(problem)
    table = label_table(problem, solution)
    assert table.label[0] == 2
    low = solution.top[:, 0] < 1.0
    np.testing.assert_array_equal(table.label == UNKNOWN, low)
    assert table.corrected.tolist() == [True] + [False] * 59
    assert (table.doubt[low] == 0.5).all()
    assert table.needs_review[low].all()
    assert table.doubt[0] == 0.0


def test_reasons_are_listed_and_ask_for_a_review(tmp_path):
    problem, truth = simulated_problem(tmp_path)
    table = label_table(problem, solved(problem))
    np.testing.assert_array_equal(table.truth, truth)
    assert len(table) == 60
    for row in range(60):
        assert bool(table.reasons(row)) == table.needs_review[row]
        close = table.needs_review[row] and table.margin[row] < 0.4
        assert (CLOSE_CALL in table.reasons(row)) == close


def test_duplicates_that_disagree():
    names, same = ("a", "b", "c", "d"), ("", "a", "", "c")
    conflict = conflicting(names, same, np.array([0, 1, 2, 2]))
    assert conflict.tolist() == [True, True, False, False]


def test_far_images_are_far_from_the_others():
    distance = np.full(40, 0.7, np.float32) + np.linspace(0, 0.02, 40, dtype=np.float32)
    distance[3] = 0.9
    assert np.flatnonzero(far_away(distance)).tolist() == [3]
    assert not far_away(distance[:10]).any()  # too few to tell
    assert not far_away(np.ones(30, np.float32)).any()


def test_tiny_classes():
    label = np.array([0] * 20 + [1, UNKNOWN, 2, 2, 2])
    assert np.flatnonzero(in_tiny_classes(label, 3)).tolist() == [20]


def test_reasons_in_words():
    no, alike = np.zeros(4, bool), np.float32([1, 0.2, 1, 1])
    reasons = reasons_of(
        doubt=np.float32([0.3, 0.2, 0.3, 0.05]),
        margin=np.float32([0.1, 0.9, 0.1, 0.1]),
        neighbors=alike,
        changed=np.array([True, True, False, False]),
        zero_shot_score=np.float32([0.9, 0.3, 0.9, 0.9]),
        far=no, conflict=no, tiny=no, settled=np.array([False, False, True, False]),
    )  # fmt: skip
    words = "close call; changed from a sure zero-shot label"
    assert reasons == (words, "images like it have other labels", "", "")


def test_doubt_distance_and_duplicates_are_reasons_by_themselves():
    def reasons(doubt, *, far=False, conflict=False):
        one = np.ones(1, np.float32)
        no = np.zeros(1, bool)
        return reasons_of(
            doubt=doubt * one, margin=one, neighbors=one, changed=no, zero_shot_score=one,
            far=np.array([far]), conflict=np.array([conflict]), tiny=no, settled=no,
        )  # fmt: skip

    assert reasons(0.2) == ("doubtful",)
    assert reasons(0.01) == ("",)
    assert reasons(0.01, far=True) == ("far from every class",)
    assert reasons(0.01, conflict=True) == ("a duplicate has another label",)
