"""One person's way through a run."""

import dataclasses

import numpy as np
import pytest

from tests.labeling.report.small_runs import draw_images, small_run
from transduce.encoders.class_names import class_names_from
from transduce.errors import InvalidAnswer
from transduce.images.entries import Unreadable
from transduce.labeling.files import read_labeled
from transduce.labeling.journal import REVIEWED
from transduce.labeling.review.commands import NEW_ANSWERS, NEW_CLASSES
from transduce.labeling.review.session import CANDIDATES, ReviewSession
from transduce.labeling.trust.audit import draw_audit, read_audit

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
    assert (later["left"], later["corrections"], later["can_undo"]) == (5, 1, False)


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
    assert len(session.run.corrections()) == 2


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


def names_of(run, rows):
    return [run.labels.file_name[row] for row in rows]


def test_a_solution_can_be_undone_and_answers_come_along(run, tmp_path):
    session = ReviewSession(run, solve=solved_by(tmp_path / "again"))
    first = session.state()["item"]["row"]
    session.answer(first, "dog")
    run.journal().append("audit", run.labels.file_name[5], "cat")
    assert session.solve()["solved"]["audited"] == 1
    assert session.run.journal().audit == {run.labels.file_name[5]: "cat"}
    assert session.run.journal().draws == []
    later = session.state()["item"]["row"]
    session.answer_all([later], "unknown", "wolf")
    state = session.undo_solve()
    assert session.run.folder == run.folder
    assert state["new_classes"] == {"wolf": 1}
    wanted = {run.labels.file_name[first]: "dog", run.labels.file_name[later]: "unknown"}
    assert run.corrections() == wanted == read_labeled(run.folder / REVIEWED)
    with pytest.raises(InvalidAnswer, match="found none"):
        session.undo_solve()


def test_what_is_claimed_comes_first_and_has_examples(tmp_path):
    probabilities = [[0.4, 0.35, 0.25], [0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.9, 0.05]]
    session = ReviewSession(small_run(tmp_path, images=4, probabilities=probabilities))
    item = session.ask_again(0)["item"]
    assert [entry["label"] for entry in item["candidates"]] == ["cat", "dog", "fox"]
    assert [entry["examples"] for entry in item["candidates"]] == [[1], [3, 2], []]
    assert session.answer(0, "dog")["item"] is None
    assert session.ask_again(0)["item"]["said"] == "dog"


def test_a_grid_is_answered_in_one_step_and_what_is_wrong_is_asked_next(tmp_path):
    run = small_run(tmp_path, images=6, probabilities=[[0.8, 0.1, 0.1]] * 5 + [[0.1, 0.8, 0.1]])
    session = ReviewSession(run)
    groups = session.groups()["groups"]
    assert [(group["id"], group["left"]) for group in groups if group["kind"] == "class"] == [
        ("class-0", 5), ("class-1", 1),
    ]  # fmt: skip
    assert groups[-2]["wrong"] == pytest.approx(5 * 0.2, abs=0.06)
    rows = [cell["row"] for cell in session.grid("class-0")["cells"]]
    state = session.answer_grid(rows[:3], rows[3:])
    assert run.corrections() == dict.fromkeys(names_of(run, rows[:3]), "cat")
    assert state["item"]["row"] == rows[3]
    assert state["ahead"][0] == rows[4]
    assert session.grid("class-0")["cells"] == []
    session.answer(rows[3], "fox")
    assert session.undo()["item"]["row"] == rows[3]
    assert session.undo()["item"]["row"] == rows[0]
    assert run.corrections() == {}
    assert [cell["row"] for cell in session.grid("class-0")["cells"]] == rows
    with pytest.raises(InvalidAnswer, match="a group of the run"):
        session.grid("class-9")


def test_answers_are_listed_the_last_first_and_can_be_asked_again(run):
    session = ReviewSession(run)
    for row, label in ((0, "dog"), (1, "cat"), (0, "fox")):
        session.answer(row, label)
    listed = session.answers()
    assert [(entry["row"], entry["label"]) for entry in listed["answers"]] == [
        (0, "fox"),
        (1, "cat"),
    ]
    assert session.ask_again(1)["item"]["row"] == 1
    state = session.answer(1, "dog")
    assert (state["left"], state["corrections"]) == (4, 2)


def test_images_of_the_same_content_are_answered_once(run):
    names = run.labels.file_name
    copies = ("", names[0], "", "", names[0], "")
    run = dataclasses.replace(run, labels=dataclasses.replace(run.labels, duplicate_of=copies))
    session = ReviewSession(run)
    assert session.ask_again(4)["item"]["same"] == [0, 1]
    state = session.answer(4, "fox", same=True)
    assert run.corrections() == dict.fromkeys(names_of(run, [4, 0, 1]), "fox")
    assert state["left"] == 3
    assert session.undo()["left"] == 6
    assert len(session.answer(4, "fox")["ahead"]) == 4
    assert run.corrections() == {names[4]: "fox"}


def test_a_new_class_is_kept_beside_unknown_and_the_next_command_has_it(run):
    session = ReviewSession(run)
    state = session.answer_all([2, 3], "unknown", "wolf cub")
    assert run.corrections() == dict.fromkeys(names_of(run, [2, 3]), "unknown")
    assert state["new_classes"] == {"wolf cub": 2}
    assert read_labeled(run.folder / NEW_ANSWERS) == dict.fromkeys(
        names_of(run, [2, 3]), "wolf cub"
    )
    classes = class_names_from(str(run.folder / NEW_CLASSES))
    assert classes.labels == ("cat", "dog", "fox", "wolf cub")
    assert str(run.folder / NEW_CLASSES) in state["label_command"]
    assert session.answer_all([3], "unknown", "dog")["new_classes"] == {"wolf cub": 1}
    assert run.corrections()[run.labels.file_name[3]] == "dog"
    session.undo()
    state = session.undo()
    assert (state["new_classes"], state["label_command"]) == ({}, "")


def test_a_list_is_asked_in_its_order(run):
    session = ReviewSession(run, only=[4, 1])
    assert (session.state()["total"], session.state()["item"]["row"]) == (2, 4)
    state = session.ask_only("\n".join(names_of(run, [3, 0, 5])))
    assert ([state["item"]["row"], *state["ahead"]], state["mode"]) == ([3, 0, 5], "only")
    with pytest.raises(InvalidAnswer, match="names of images"):
        session.ask_only("nothing.png")


def test_an_audit_asks_its_images_alone_and_keeps_the_answers_apart(run):
    drawn = draw_audit(run, 4, seed=1)
    session = ReviewSession(run, audit=drawn)
    state = session.state()
    assert (state["mode"], state["total"], state["left"]) == ("audit", 4, 4)
    assert names_of(run, [state["item"]["row"], *state["ahead"]]) == list(drawn.file_names)
    put_off = state["item"]["row"]
    state = session.answer(put_off, None)  # put off: it comes again at the end
    assert (state["left"], state["skipped"]) == (4, 1)
    state = session.answer(state["item"]["row"], state["item"]["label"])
    assert session.progress() == (1, 4)
    assert (run.corrections(), len(run.journal().audit)) == ({}, 1)
    for wish in (session.solve, session.groups, session.ask_everything):
        with pytest.raises(InvalidAnswer, match="audit"):
            wish()
    outside = next(row for row in range(6) if row not in drawn.rows)
    with pytest.raises(InvalidAnswer, match="audit"):
        session.ask_again(outside)
    later = ReviewSession(run, audit=draw_audit(run, 4))  # it goes on
    while item := later.state()["item"]:
        later.answer(item["row"], "unknown", same=True)
    assert read_audit(run).complete
    assert later.state()["next"] == f"transduce certify {run.folder}"
    assert later.progress() == (4, 4)


def test_an_answer_outside_the_audit_is_refused(run):
    drawn = draw_audit(run, 2, seed=1)
    outside = next(row for row in range(6) if row not in drawn.rows)
    with pytest.raises(InvalidAnswer, match="an image of the audit"):
        ReviewSession(run, audit=drawn).answer(outside, "cat")
    assert run.journal().audit == {}


def test_expected_errors_are_of_what_is_not_answered(run):
    session = ReviewSession(run)
    expected = session.state()["expected"]
    assert expected == {"queue": round(float(run.labels.doubt.sum())), "rest": 0}
    for row in range(6):
        state = session.answer(row, "cat")
    assert state["expected"] == {"queue": 0, "rest": 0}
    assert state["next"] == f"transduce review {run.folder} --audit 60"


def test_a_run_of_features_alone_says_so_and_takes_a_folder(tmp_path):
    folder = tmp_path / "pictures"
    names = ["a.png", "sub/b.png", "../outside.png"]
    draw_images(folder, names)
    run = small_run(tmp_path / "run", names=names, paths=[""] * 3)
    session = ReviewSession(run)
    assert "--images FOLDER" in session.state()["no_images"]
    with pytest.raises(Unreadable, match="only its features"):
        session.jpeg(0, 100)
    session = ReviewSession(run, images=folder)
    assert session.state()["no_images"] == ""
    assert session.jpeg(1, 100).startswith(b"\xff\xd8")
    with pytest.raises(Unreadable, match="leads out"):
        session.jpeg(2, 100)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_done_the_page_says_what_the_file_has_and_undo_leads_back(run, seed):
    generator = np.random.default_rng(seed)
    session = ReviewSession(run, everything=True)
    steps = []  # what the file had before each step that undo takes back

    def some():
        return generator.permutation(6)[: generator.integers(1, 4)].tolist()

    for _ in range(60):
        act = generator.choice(["answer", "skip", "grid", "all", "again", "undo"])
        before = run.corrections()
        if act == "answer" and session.state()["item"]:
            row = session.state()["item"]["row"]
            state = session.answer(row, str(generator.choice(["cat", "dog", "unknown"])))
        elif act == "skip" and session.state()["item"]:
            state = session.answer(session.state()["item"]["row"], None)
        elif act == "grid":
            rows = some()
            state = session.answer_grid(rows[1:], rows[:1])
        elif act == "all":
            state = session.answer_all(some(), "unknown", str(generator.choice(["", "wolf"])))
        elif act == "again":
            state = session.ask_again(int(generator.integers(6)))
        else:
            state = session.undo()
            if steps:
                assert run.corrections() == steps.pop()
        if act in ("answer", "skip", "grid", "all") and len(steps) < session.corrections.steps:
            steps.append(before)
        assert len(steps) == session.corrections.steps
        given = run.corrections()
        assert state["corrections"] == len(given)
        assert (state["item"] is None) == (state["left"] == 0)
        assert set(state["ahead"]).isdisjoint({state["item"] and state["item"]["row"]})
        left = set(session._asking.rows())
        assert left | session._answered_rows() | session._asking._skipped == set(range(6))
    while session.undo()["can_undo"]:
        pass
    assert run.corrections() == {} == read_labeled(run.folder / REVIEWED)
    assert run.journal().new_classes == {}
