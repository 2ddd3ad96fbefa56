"""The columns of the labels."""

import numpy as np

from tests.labeling.stores import simulated_problem
from tests.labeling.test_solving import solved
from transduce.labeling.review_reasons import CLOSE_CALL
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.table import label_table


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
