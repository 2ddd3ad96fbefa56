"""The figures of a run, and its warnings."""

from dataclasses import replace

import numpy as np

from tests.labeling.solving.test_solve import solved
from tests.labeling.stores import simulated_problem
from transduce.labeling.settings import UNKNOWN
from transduce.labeling.summary import Summary, summarize
from transduce.labeling.table import label_table
from transduce.machine.atomic import from_plain, to_plain


def summary_of(problem, solution, table):
    return summarize(problem, solution, table, seconds={"solving": 1.23456}, command="x")


def test_counts_add_up_and_come_back_from_json(tmp_path):
    problem, truth = simulated_problem(tmp_path)
    solution = solved(problem)
    table = label_table(problem, solution)
    summary = summary_of(problem, solution, table)
    assert sum(entry.joint for entry in summary.classes) == summary.images == 60
    assert all(entry.looks_right + entry.review == entry.joint for entry in summary.classes)
    assert summary.evaluation.accuracy == (table.label == truth).mean()
    assert summary.seconds == {"solving": 1.235}
    assert from_plain(Summary, to_plain(summary), "summary") == summary


def test_a_collapsed_answer_and_too_many_changes_are_warned_of(tmp_path):
    problem, _ = simulated_problem(tmp_path, method="em-dirichlet")
    solution = solved(problem)
    table = label_table(problem, solution)
    collapsed = summary_of(problem, solution, replace(table, label=np.full(60, 4)))
    assert any("looks collapsed: it uses 1 classes" in text for text in collapsed.warnings)
    moved = replace(table, label=np.roll(table.label, 1), changed=np.ones(60, bool))
    warnings = summary_of(problem, solution, moved).warnings
    assert any("changes 60 labels" in text for text in warnings)
    nothing = replace(table, label=np.full(60, UNKNOWN))
    assert summary_of(problem, solution, nothing).unknown == 60
