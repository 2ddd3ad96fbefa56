import json

import pyarrow.parquet as pq
import pytest

from tests.labeling.trust.audited_runs import run_with_doubts, true_answers
from transduce.labeling.journal import Journal, line_of
from transduce.labeling.trust.audit import draw_audit


@pytest.fixture
def run(tmp_path):
    return run_with_doubts(tmp_path)


def answer(run, size=150):
    audit = draw_audit(run, size, seed=1)
    lines = [line_of("audit", *answer) for answer in true_answers(run, audit).items()]
    Journal.open(run.folder).append_lines(lines)


def test_it_says_what_is_certified_and_what_to_check(command, run):
    answer(run)
    code, out, err = command("certify", run.folder, "--error", 0.05, "--sets", 0.9)
    assert code == 0
    assert "150 of 300 images, drawn at random" in out
    assert "of the labels are right" in out
    assert "at most 5% of them are wrong, with 95% confidence" in " ".join(out.split())
    assert "To check" in out
    assert "certificate.json" in err
    lists = pq.read_table(run.folder / "sets.parquet")["classes"].to_pylist()
    assert len(lists) == 300
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    one = sum(1 for names in lists if len(names) == 1)
    assert "Sets of classes" in page
    assert f"<b>{one}</b> of 300 images have one class alone" in page
    assert f"<b>{300 - one}</b>" in page
    assert "by the method LAC" in page
    code, *_ = command("export", run.folder, "--to", "parquet", "--out", run.folder / "x.parquet")
    assert code == 0
    exported = pq.read_table(run.folder / "x.parquet")["classes"].to_pylist()
    assert sum(names == before for names, before in zip(exported, lists, strict=True)) >= 150


def test_json_is_the_certificate(command, run):
    answer(run)
    _, out, _ = command("certify", run.folder, "--json")
    assert json.loads(out) == json.loads((run.folder / "certificate.json").read_text())


def test_without_an_audit_it_says_how_to_make_one(command, run):
    code, _, err = command("certify", run.folder)
    assert code == 2
    assert f"transduce review {run.folder} --audit 100" in err
    assert not (run.folder / "certificate.json").exists()


def test_an_unfinished_audit_is_refused(command, run):
    draw_audit(run, 20)
    code, _, err = command("certify", run.folder)
    assert code == 2
    assert "20 without an answer" in err


def test_a_small_audit_says_that_nothing_is_certified_and_what_would_do(command, run):
    answer(run, size=20)
    _, out, _ = command("certify", run.folder, "--error", 0.1, "--confidence", 0.975)
    assert "Certified  none: no part of the labels is known to be at most 10% wrong" in out
    assert "97.5% confidence" in out
    assert "new images would probably do" in out


def test_an_audit_of_every_image_counts_and_leaves_nothing_to_check(command, run):
    answer(run, size=300)
    code, out, _ = command("certify", run.folder, "--error", 0.05)
    assert code == 0
    assert "all of 300 images:" in out
    assert "confidence" not in out
    assert "To check   none" in out
    assert "More" not in out
    code, _, err = command("certify", run.folder, "--error", 0.1)
    assert code == 2
    assert "No image is left that was not audited." in " ".join(err.split())


def test_missing_answers_are_told_from_wrong_ones(command, run):
    draw_audit(run, 20, seed=1)
    _, out, _ = command("certify", run.folder, "--count-unanswered-as-wrong")
    words = " ".join(out.split())
    assert "0 labels wrong, and 20 without an answer counted as wrong" in words


def test_no_line_is_wider_than_a_terminal(command, run):
    answer(run, size=40)
    _, out, _ = command("certify", run.folder, "--error", 0.01, "--sets", 0.95)
    lines = [line for line in out.splitlines() if str(run.folder) not in line]
    assert max(map(len, lines)) <= 80


def test_no_sample_shows_that_nothing_is_wrong(command, run):
    _, _, err = command("certify", run.folder, "--error", 0)
    assert "no sample shows that nothing is wrong; give 0.05" in " ".join(err.split())
    _, _, err = command("certify", run.folder, "--confidence", 1)
    assert "give 0.95" in " ".join(err.split())
