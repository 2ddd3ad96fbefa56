from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import entropy

from tests.labeling.trust.audited_runs import run_with_doubts
from transduce.labeling.journal import Journal, line_of
from transduce.labeling.problem import names_entropy
from transduce.labeling.table import strangeness
from transduce.labeling.trust.audit import draw_audit
from transduce.labeling.trust.unknown import best_threshold, suspects


def strange_run(folder, strange_rows):
    """Images of known classes alike, and some far from every class and between many."""
    run = run_with_doubts(folder)
    random = np.random.default_rng(0)
    distance = np.float32(0.7 + 0.01 * random.normal(size=300))
    undecided = np.float32(0.3 + 0.01 * random.normal(size=300))
    distance[strange_rows] += 0.05
    undecided[strange_rows] += 0.5
    return replace(run, labels=replace(run.labels, strangeness=strangeness(distance, undecided)))


def test_both_parts_make_an_image_strange():
    strange = strangeness(np.float32([0.7, 0.8, 0.7, 0.8]), np.float32([0.1, 0.1, 0.8, 0.8]))
    assert strange.argmin() == 0
    assert strange.argmax() == 3
    assert strangeness(np.ones(3, np.float32), np.ones(3, np.float32)).tolist() == [0, 0, 0]


def test_an_image_between_many_classes_is_stranger_than_one_between_two():
    many, two, one = names_entropy(np.float32([[20, 18, 18, 18], [20, 20, 5, 5], [20, 5, 5, 5]]))
    assert many > two > one >= 0
    assert many == pytest.approx(entropy(softmax(0.6 * np.array([20, 18, 18, 18]))), rel=1e-5)
    assert names_entropy(np.zeros((1, 7))) == pytest.approx(np.log(7))


def test_without_an_audit_the_unusual_are_suspected(tmp_path):
    found = suspects(strange_run(tmp_path, np.arange(0, 300, 30)))
    strange = np.arange(300) % 30 == 0
    assert found.suspected[strange].all()
    assert found.suspected[~strange].mean() < 0.02  # of a normal spread, 1.2 % are beyond 2.25
    assert not found.from_audit


def test_the_audit_decides_from_where_on(tmp_path):
    """Most images are of no class: too many to be unusual, but the audit knows."""
    rows = np.flatnonzero(np.arange(300) % 3)
    run = strange_run(tmp_path, rows)
    assert suspects(run).suspected.sum() < 50
    audit = draw_audit(run, 60, seed=0)
    lines = [
        line_of("audit", name, "unknown" if row in rows else "cat")
        for row, name in zip(audit.rows, audit.file_names, strict=True)
    ]
    Journal.open(run.folder).append_lines(lines)
    found = suspects(run)
    assert found.from_audit
    assert np.flatnonzero(found.suspected).tolist() == rows.tolist()


def test_what_people_said_counts_first(tmp_path):
    run = strange_run(tmp_path, [])
    audit = draw_audit(run, 10, seed=0)
    Journal.open(run.folder).append("audit", audit.file_names[0], "unknown")
    assert suspects(run).suspected[audit.rows[0]]


@pytest.mark.parametrize(
    ("unknown", "expected"),
    [([1, 1, 0, 0], 2.5), ([0, 0, 0, 0], 4.0), ([1, 1, 1, 1], 0.5), ([1, 0, 1, 0], 3.5)],
)
def test_the_threshold_makes_the_fewest_mistakes(unknown, expected):
    found = best_threshold(np.array([4.0, 3.0, 2.0, 1.0]), np.array(unknown, bool))
    assert found == pytest.approx(expected, abs=0.51 if expected == 4.0 else 1e-9)
