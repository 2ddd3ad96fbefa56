"""The order of the questions, and the answers on the disk."""

import dataclasses
import os

import numpy as np
import pytest

from tests.labeling.report.small_runs import small_run
from transduce.errors import InvalidAnswer, InvalidFile, RunInUse
from transduce.labeling.files import read_labeled
from transduce.labeling.journal import ANSWERS, REVIEWED, Journal
from transduce.labeling.review.corrections import Corrections
from transduce.labeling.review.lock import LOCK, only_review
from transduce.labeling.review.queue import review_order, rows_named
from transduce.labeling.table import CLOSE_CALL, FAR


@pytest.fixture
def labels(tmp_path):
    table = small_run(tmp_path, images=8).labels
    reason = (CLOSE_CALL, "", f"{CLOSE_CALL}; {FAR}", CLOSE_CALL, "", FAR, "", "")
    margin = np.float32([0.3, 0.0, 0.9, 0.1, 0.5, 0.2, 0.4, 0.6])
    doubt = np.float32([0.2, 0.9, 0.5, 0.3, 0.1, 0.3, 0.1, 0.0])
    needs = np.array([bool(words) for words in reason])
    return dataclasses.replace(table, reason=reason, margin=margin, doubt=doubt, needs_review=needs)


def test_the_most_doubtful_first_then_the_closest_calls(labels):
    assert review_order(labels) == [2, 3, 5, 0]


def test_images_labeled_by_hand_are_not_asked_again(labels):
    by_hand = np.arange(8) == 3
    assert review_order(dataclasses.replace(labels, corrected=by_hand)) == [2, 5, 0]
    assert 3 not in review_order(dataclasses.replace(labels, corrected=by_hand), everything=True)


def test_everything_on_request_or_when_nothing_is_in_doubt(labels):
    everything = [1, 2, 3, 5, 0, 6, 4, 7]
    assert review_order(labels, everything=True) == everything
    nothing = dataclasses.replace(labels, needs_review=np.zeros(8, dtype=bool), reason=("",) * 8)
    assert review_order(nothing) == everything


def test_a_list_of_names_is_asked_in_its_order():
    names = ["a b.png", "c.png", " d.png"]
    assert rows_named("\ufeffc.png\r\n\n  a b.png \n d.png\nc.png\n", names) == [1, 0, 2]
    with pytest.raises(InvalidAnswer, match=r"found 1 others: 'x.png'"):
        rows_named("c.png\nx.png\n", names)
    with pytest.raises(InvalidAnswer, match="found none"):
        rows_named(" \n", names)


def test_every_answer_is_on_the_disk_at_once(tmp_path):
    answers = Corrections.open(tmp_path)
    assert list(tmp_path.iterdir()) == []
    answers.set('a "quoted", name\n.png', "cat")
    assert read_labeled(tmp_path / REVIEWED) == {'a "quoted", name\n.png': "cat"}
    answers.set("b.png", "unknown")
    answers.set("a.png", "dog")
    answers.set("b.png", "dog")
    assert Corrections.open(tmp_path).labels == answers.labels
    assert read_labeled(tmp_path / REVIEWED)["b.png"] == "dog"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [ANSWERS, REVIEWED]


def test_undo_goes_back_step_by_step(tmp_path):
    answers = Corrections.open(tmp_path)
    answers.set("a.png", "cat")
    answers.set("b.png", None)
    answers.set_all({"a.png": "dog", "c.png": "dog"})
    assert [answers.undo(), answers.labels] == [["a.png", "c.png"], {"a.png": "cat"}]
    assert [answers.undo(), answers.labels] == [["b.png"], {"a.png": "cat"}]
    assert answers.can_undo
    assert [answers.undo(), answers.labels] == [["a.png"], {}]
    assert not answers.can_undo
    assert answers.undo() == []
    assert read_labeled(tmp_path / REVIEWED) == {}


def test_audit_answers_are_kept_apart(tmp_path):
    audit = Corrections.open(tmp_path, "audit")
    audit.set("a.png", "cat")
    audit.set("b.png", "cat")
    audit.undo()
    journal = Journal.open(tmp_path)
    assert (journal.audit, journal.review) == ({"a.png": "cat"}, {})
    assert not (tmp_path / REVIEWED).exists()


def test_a_broken_file_is_refused_and_kept(tmp_path):
    path = tmp_path / REVIEWED
    path.write_text("something else\n1\n")
    with pytest.raises(InvalidFile, match="file_name and label"):
        Corrections.open(tmp_path)
    assert path.read_text() == "something else\n1\n"


def test_a_second_review_of_a_run_is_refused_until_the_first_ends(tmp_path):
    with only_review(tmp_path):
        with pytest.raises(RunInUse, match=f"process {os.getpid()}"), only_review(tmp_path):
            pass
        assert [entry.name for entry in tmp_path.iterdir()] == [LOCK]
    (tmp_path / LOCK).write_text("1\n")  # left by a process that was killed: nobody holds it
    with only_review(tmp_path):
        assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"
    assert list(tmp_path.iterdir()) == []
