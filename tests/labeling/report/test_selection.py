"""Which images the page carries."""

import dataclasses

import numpy as np

from tests.labeling.report.small_runs import small_run
from transduce.labeling import files
from transduce.labeling.report import selection
from transduce.labeling.report.selection import summarize_probabilities
from transduce.labeling.table import CLOSE_CALL, FAR


def test_each_queue_gets_its_turn_and_no_row_comes_twice():
    assert selection.fair_share([[1, 2, 3, 4], [2, 9], []], 10) == [1, 2, 9, 3, 4]
    assert selection.fair_share([[1, 2, 3, 4], [7]], 3) == [1, 7, 2]


def test_queues_put_the_most_urgent_first(tmp_path):
    labels = small_run(tmp_path, images=30).labels
    reasons = tuple(f"{CLOSE_CALL}; {FAR}" if row % 2 else "" for row in range(30))
    labels = dataclasses.replace(
        labels, reason=reasons, needs_review=np.array([bool(reason) for reason in reasons])
    )
    queues = selection.queues(labels)
    assert set(queues) == {CLOSE_CALL, FAR}
    assert queues[CLOSE_CALL] == sorted(range(1, 30, 2), key=lambda row: labels.margin[row])
    assert queues[FAR] == sorted(range(1, 30, 2), key=lambda row: -labels.distance[row])


def test_sheets_show_no_image_twice(tmp_path):
    labels = small_run(tmp_path, images=30).labels
    sheets, left_out = selection.sheet_rows(labels, 3)
    assert left_out == 0
    for k, (typical, atypical) in sheets.items():
        assert not set(typical) & set(atypical)
        assert (labels.label[typical + atypical] == k).all()
        assert min(labels.score[typical]) >= max(labels.score[atypical]) - 0.01


def test_many_classes_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "MOST_SHEETS", 2)
    labels = small_run(tmp_path, images=30).labels
    sheets, left_out = selection.sheet_rows(labels, 3)
    assert (len(sheets), left_out) == (2, 1)


def test_shared_probability_does_not_depend_on_the_blocks(tmp_path, monkeypatch):
    run = small_run(tmp_path, images=23)
    monkeypatch.setattr(files, "ROWS_AT_A_TIME", 5)
    likeliest, pairs = summarize_probabilities(run, [0, 7, 22], 2)
    every = run.probabilities()
    for k in range(3):
        given = every[run.labels.label == k]
        np.testing.assert_allclose(pairs.shared[k], given.mean(0), rtol=1e-5)
    assert sorted(likeliest) == [0, 7, 22]
    for row, candidates in likeliest.items():
        assert [k for k, _ in candidates] == np.argsort(-every[row])[:2].tolist()
    (first, second, share), *_ = pairs.most_confusable(3, 0.0)
    assert share == max(pairs.shared[first, second], pairs.shared[second, first])
