import json

import numpy as np
import pytest

from tests.labeling.trust.audited_runs import run_with_doubts, true_answers
from transduce.errors import InvalidAudit
from transduce.labeling.journal import ANSWERS, Journal
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.trust.audit import draw_audit, read_audit
from transduce.labeling.trust.certificate import certify


@pytest.fixture
def run(tmp_path):
    return run_with_doubts(tmp_path)


def answer(run, names, label="cat"):
    journal = Journal.open(run.folder)
    for name in names:
        journal.append("audit", name, label)


def test_nothing_was_drawn_at_first(run):
    assert read_audit(run) is None


def test_the_draw_is_recorded_before_it_is_shown(run):
    audit = draw_audit(run, 20, seed=3)
    (line,) = Journal.open(run.folder).draws
    assert line["file_names"] == list(audit.file_names)
    assert (line["seed"], line["size"], line["population"]) == (3, 20, 300)
    assert len(set(audit.file_names)) == 20
    assert read_audit(run).unanswered == audit.file_names


def test_every_image_is_drawn_equally_often(run):
    """Of 300 images 30 are drawn 100 times: each about ten times, by the binomial."""
    drawn = np.zeros(300)
    for seed in range(100):
        (run.folder / ANSWERS).unlink(missing_ok=True)
        drawn[draw_audit(run, 30, seed=seed).rows] += 1
    assert drawn.sum() == 3000
    assert drawn.min() >= 1
    assert drawn.max() <= 24
    assert abs(drawn[:150].sum() - 1500) < 150


def test_without_a_seed_each_draw_is_another(tmp_path):
    first = draw_audit(run_with_doubts(tmp_path / "a"), 20)
    second = draw_audit(run_with_doubts(tmp_path / "b"), 20)
    assert first.file_names != second.file_names


def test_an_unfinished_audit_goes_on(run):
    audit = draw_audit(run, 20, seed=3)
    answer(run, audit.file_names[:5])
    again = draw_audit(run, 20)
    assert again.file_names == audit.file_names
    assert again.unanswered == audit.file_names[5:]
    assert not again.complete


@pytest.mark.parametrize(("size", "seed"), [(30, None), (20, 4)])
def test_an_unfinished_audit_is_not_drawn_anew(run, size, seed):
    answer(run, draw_audit(run, 20, seed=3).file_names[:5])
    with pytest.raises(InvalidAudit, match="15 without an answer"):
        draw_audit(run, size, seed=seed)


def test_a_second_draw_leaves_out_what_is_known(run):
    first = draw_audit(run, 200, seed=0)
    answer(run, first.file_names)
    second = draw_audit(run, 100, seed=0)
    assert second.number == 2
    assert not set(second.file_names) & set(first.file_names)
    assert set(second.known) == set(first.rows.tolist())
    answer(run, second.file_names)
    with pytest.raises(InvalidAudit, match="1 to 0 images"):
        draw_audit(run, 1)


@pytest.mark.parametrize("size", [0, 301])
def test_a_draw_needs_images(run, size):
    with pytest.raises(InvalidAudit, match="1 to 300 images"):
        draw_audit(run, size)


def test_answers_before_the_draw_do_not_count(run):
    answer(run, run.labels.file_name)
    audit = draw_audit(run, 20)
    assert len(read_audit(run).unanswered) == 20
    answer(run, audit.file_names[:1])
    assert read_audit(run).unanswered == audit.file_names[1:]


def test_an_undone_answer_is_the_one_before(run):
    name = draw_audit(run, 20).file_names[0]
    journal = Journal.open(run.folder)
    for label in ("cat", "dog"):
        journal.append("audit", name, label)
    journal.append("undo", name, "cat", {"of": "audit"})
    assert read_audit(run).answers == {name: "cat"}
    journal.append("undo", name, None, {"of": "audit"})
    assert read_audit(run).answers == {}


def edit_draw(run, change):
    path = run.folder / ANSWERS
    line = json.loads(path.read_text().splitlines()[0])
    path.write_text(json.dumps({**line, **change(line)}) + "\n")


def test_images_that_were_chosen_are_no_draw(run):
    draw_audit(run, 20, seed=3)
    chosen = list(run.labels.file_name[:20])  # the most trusted ones
    edit_draw(run, lambda line: {"file_names": chosen})
    assert "not the random draw" in read_audit(run).void
    with pytest.raises(InvalidAudit, match="not the random draw"):
        certify(run)


def test_labels_that_changed_void_the_audit(run):
    audit = draw_audit(run, 20, seed=3)
    certify(run, true_answers(run, audit))
    run.labels.label[0] = (run.labels.label[0] + 1) % 3
    assert "labels" in read_audit(run).void
    with pytest.raises(InvalidAudit, match="not those that the audit was drawn from"):
        certify(run)


def test_the_copy_of_a_run_keeps_its_audit(run, tmp_path):
    audit = draw_audit(run, 20, seed=3)
    moved = run.folder.rename(tmp_path / "moved")
    assert read_audit(RunDirectory.load(moved)).file_names == audit.file_names
    assert not read_audit(RunDirectory.load(moved)).void
