"""One person's way through a run."""

import dataclasses

import numpy as np
import pytest

from tests.labeling.report.small_runs import small_run
from transduce.errors import InvalidAnswer
from transduce.labeling.review.session import CANDIDATES, ReviewSession
from transduce.labeling.run_directory import REVIEWED

DOUBTFUL = [[0.4, 0.35, 0.25]] * 6


@pytest.fixture
def run(tmp_path):
    return small_run(tmp_path, images=6, probabilities=DOUBTFUL)


def test_it_asks_saves_and_goes_on(run):
    session = ReviewSession(run)
    first = session.state()
    assert (first["left"], first["total"]) == (6, 6)
    assert [entry["label"] for entry in first["item"]["candidates"]] == ["cat", "dog", "fox"]
    second = session.answer(first["item"]["row"], "dog")
    assert second["item"]["row"] == first["ahead"][0]
    assert run.corrections() == {first["item"]["file_name"]: "dog"}
    third = session.answer(second["item"]["row"], None)
    assert (third["left"], third["skipped"], third["corrections"]) == (4, 1, 1)


def test_undo_brings_the_image_back(run):
    session = ReviewSession(run)
    first = session.state()["item"]["row"]
    second = session.answer(first, "unknown")["item"]["row"]
    session.answer(second, None)
    assert session.undo()["item"]["row"] == second
    assert session.undo()["item"]["row"] == first
    assert run.corrections() == {}
    assert session.undo()["left"] == 6
    assert session.answer(first, "cat")["item"]["row"] == second


def test_an_answer_can_be_undone_after_the_last_image(run):
    session = ReviewSession(run)
    state = session.state()
    while state["item"]:
        state = session.answer(state["item"]["row"], "fox")
    assert state["left"] == 0
    assert session.undo()["left"] == 1


def test_after_the_doubtful_images_come_the_others(tmp_path):
    sure = [[0.4, 0.35, 0.25]] * 2 + [[0.9, 0.05, 0.05], [0.8, 0.1, 0.1]]
    session = ReviewSession(small_run(tmp_path, images=4, probabilities=sure, zero_shot=sure))
    assert session.state()["total"] == 2
    for row in (0, 1):
        session.answer(row, "dog")
    state = session.ask_everything()
    assert (state["left"], state["total"], state["item"]["row"]) == (2, 4, 3)
    assert state["item"]["candidates"]


def test_a_later_session_goes_on_where_the_first_ended(run):
    session = ReviewSession(run)
    row = session.state()["item"]["row"]
    session.answer(row, "fox")
    later = ReviewSession(run).state()
    assert (later["left"], later["answered"], later["can_undo"]) == (5, 1, False)


@pytest.mark.parametrize(("row", "label"), [(0, "wolf"), (0, ""), (6, "cat"), (-1, "cat")])
def test_answers_the_run_does_not_have_are_refused(run, row, label):
    with pytest.raises(InvalidAnswer):
        ReviewSession(run).answer(row, label)
    assert not (run.folder / REVIEWED).exists()


def test_many_classes_give_as_many_candidates_as_there_are_digits(tmp_path):
    names = tuple(f"class {number}" for number in range(30))
    shares = np.linspace(0.04, 0.0267, 30)
    run = small_run(tmp_path, images=1, classes=names, probabilities=[shares / shares.sum()])
    candidates = ReviewSession(run).state()["item"]["candidates"]
    assert [entry["label"] for entry in candidates] == list(names[:CANDIDATES])


def solved_by(folder):
    """A solution that gives every image its truth."""

    def solve(run, corrections):
        solve.given = corrections
        right = np.eye(3)[run.labels.truth] * 0.97 + 0.01
        again = small_run(
            folder, images=6, probabilities=right, truth_indices=run.labels.truth, zero_shot=right
        )
        by_hand = np.array([name in corrections for name in run.labels.file_name])
        return dataclasses.replace(
            again, labels=dataclasses.replace(again.labels, corrected=by_hand)
        )

    return solve


def test_solving_again_shows_what_changed_and_goes_on_in_the_new_run(run, tmp_path):
    solve = solved_by(tmp_path / "again")
    session = ReviewSession(run, solve=solve)
    row = session.state()["item"]["row"]
    truth = run.classes.labels[run.labels.truth[row]]
    session.answer(row, truth)
    state = session.solve()
    assert solve.given == {run.labels.file_name[row]: truth}
    changes = state["solved"]
    wrong = run.labels.label != run.labels.truth
    assert changes["changed"] == wrong.sum() == changes["by_hand"] + changes["others"]
    assert changes["by_hand"] == int(wrong[row])
    everything = {"images": 6, "before": pytest.approx(1 - wrong.mean()), "after": 1.0}
    assert changes["accuracy"] == everything
    others = np.delete(wrong, row)
    assert changes["accuracy_of_others"]["images"] == 5
    assert changes["accuracy_of_others"]["before"] == pytest.approx(1 - others.mean())
    assert sum(move["images"] for move in changes["moves"]) == wrong.sum()
    assert session.run.folder != run.folder
    assert row not in [state["item"]["row"], *state["ahead"]]
    session.answer(state["item"]["row"], "cat")
    assert len(run.corrections()) == 1
    assert len(session.run.corrections()) == 1


def test_without_truth_no_accuracy_is_claimed(tmp_path):
    run = small_run(tmp_path, images=6, probabilities=DOUBTFUL, truth=False)
    session = ReviewSession(run, solve=lambda run, corrections: run)
    session.answer(0, "dog")
    changes = session.solve()["solved"]
    assert changes["accuracy"] is None
    assert changes["accuracy_of_others"] is None


def test_nothing_to_solve_with_is_said(run):
    with pytest.raises(InvalidAnswer, match="found none"):
        ReviewSession(run).solve()
