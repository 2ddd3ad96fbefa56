import json
from dataclasses import replace

import numpy as np
import pytest

from tests.labeling.trust.audited_runs import run_with_doubts, true_answers
from transduce.errors import InvalidAudit, InvalidSetting
from transduce.labeling.journal import Journal
from transduce.labeling.trust.audit import draw_audit, read_audit
from transduce.labeling.trust.certificate import CERTIFICATE, certify, read_certificate


@pytest.fixture
def run(tmp_path):
    return run_with_doubts(tmp_path)


@pytest.fixture
def audit(run):
    return draw_audit(run, 150, seed=1)


def wrong_rows(run):
    return run.labels.label != run.labels.truth


def test_trusted_labels_are_certified_and_the_rest_named(run, audit):
    certificate = certify(run, true_answers(run, audit), error=0.05)
    share = certificate.certified.mean()
    assert 0.5 < share < 0.9  # a third of the labels is often wrong
    assert wrong_rows(run)[certificate.certified].mean() <= 0.05
    assert certificate.certified.sum() == certificate.certified_images
    doubt = run.labels.doubt
    assert doubt[certificate.certified].max() <= doubt[~certificate.certified].min()


def test_the_interval_holds_the_accuracy_and_is_tighter_than_counting(run, audit):
    certificate = certify(run, true_answers(run, audit))
    low, high = certificate.interval
    assert low <= 1 - wrong_rows(run).mean() <= high
    assert low <= certificate.accuracy <= high
    counted_low, counted_high = certificate.counting_interval
    assert high - low < counted_high - counted_low


def test_an_audit_of_all_images_leaves_nothing_open(run):
    everything = draw_audit(run, 300)
    certificate = certify(run, true_answers(run, everything))
    right = 1 - wrong_rows(run).mean()
    assert certificate.interval == pytest.approx((right, right))
    assert certificate.accuracy == pytest.approx(right)


def test_it_is_read_as_it_was_written(run, audit):
    assert read_certificate(run) is None
    written = certify(run, true_answers(run, audit))
    read = read_certificate(run)
    np.testing.assert_array_equal(read.certified, written.certified)
    assert (read.error, read.confidence, read.seed, read.void) == (0.05, 0.95, 1, "")
    assert read.tests == written.tests
    stored = json.loads((run.folder / CERTIFICATE).read_text())
    assert stored["format"] == "transduce-certificate"
    assert "certified" not in stored


def test_without_a_draw_nothing_is_certified(run):
    with pytest.raises(InvalidAudit, match="found no draw"):
        certify(run, {run.labels.file_name[0]: "cat"})


def test_images_that_were_not_drawn_are_refused(run, audit):
    others = [name for name in run.labels.file_name if name not in set(audit.file_names)]
    answers = {**true_answers(run, audit), others[0]: "cat"}
    with pytest.raises(InvalidAudit, match="found 1 others"):
        certify(run, answers)
    assert read_audit(run).answers == {}


def test_an_unfinished_audit_is_refused_or_counted_as_wrong(run, audit):
    answers = true_answers(run, audit)
    part = dict(list(answers.items())[:140])
    with pytest.raises(InvalidAudit, match="10 without an answer"):
        certify(run, part)
    careful = certify(run, count_unanswered_as_wrong=True)
    assert careful.unanswered == 10
    assert careful.wrong >= 10


def test_missing_answers_may_follow_but_none_may_change(run, audit):
    answers = true_answers(run, audit)
    certify(run, dict(list(answers.items())[:140]), count_unanswered_as_wrong=True)
    careful = read_certificate(run)
    whole = certify(run, answers)
    assert whole.unanswered == 0
    assert whole.certified_images >= careful.certified_images
    with pytest.raises(InvalidAudit, match="1 changed since"):
        certify(run, {audit.file_names[0]: "unknown"})


def test_a_sample_that_is_too_small_says_what_would_do(run):
    small = draw_audit(run, 20, seed=1)
    certificate = certify(run, true_answers(run, small), error=0.1)
    assert certificate.certified_images == 0
    assert certificate.more > 20
    enough = draw_audit(run, certificate.more, seed=5)
    assert certify(run, true_answers(run, enough), error=0.1).certified_images > 0


def test_where_all_is_certified_nothing_more_is_needed(run, audit):
    certificate = certify(run, true_answers(run, audit), error=0.6)
    assert certificate.certified.all()
    assert certificate.more is None


def test_another_limit_after_looking_is_refused(run, audit):
    answers = true_answers(run, audit)
    first = certify(run, answers, error=0.05)
    assert certify(run, error=0.05).certified_images == first.certified_images
    for other in ({"error": 0.1}, {"confidence": 0.9}):
        with pytest.raises(InvalidAudit, match="after looking"):
            certify(run, **other)


def test_a_second_draw_spends_what_the_first_left(run, audit):
    first = certify(run, true_answers(run, audit), error=0.05)
    again = draw_audit(run, 100, seed=2)
    assert read_certificate(run).certified_images == first.certified_images  # until the next
    second = certify(run, true_answers(run, again), error=0.1)
    assert first.level + second.level < 0.05
    assert second.number == 2
    assert read_certificate(run).certified_images == second.certified_images
    assert wrong_rows(run)[second.certified].mean() <= 0.1


def test_answers_that_change_later_void_it(run, audit):
    certify(run, true_answers(run, audit))
    Journal.open(run.folder).append("audit", audit.file_names[0], "unknown")
    changed = read_certificate(run)
    assert "answers" in changed.void
    assert not changed.certified.any()


def test_labels_that_change_later_void_it(run, audit):
    certify(run, true_answers(run, audit))
    doubt = run.labels.doubt.copy()
    doubt[5] = 0.9
    changed = read_certificate(replace(run, labels=replace(run.labels, doubt=doubt)))
    assert "labels changed" in changed.void
    assert not changed.certified.any()


def test_a_certificate_without_its_answers_is_void(run, audit):
    certify(run, true_answers(run, audit))
    Journal.open(run.folder).path.unlink()
    assert "gone" in read_certificate(run).void


def test_images_labeled_by_hand_are_neither_drawn_nor_certified(run):
    corrected = np.arange(300) < 100
    by_hand = replace(run, labels=replace(run.labels, corrected=corrected))
    audit = draw_audit(by_hand, 200)
    assert not corrected[audit.rows].any()
    certificate = certify(by_hand, true_answers(run, audit))
    assert certificate.population == 200
    assert not certificate.certified[corrected].any()


@pytest.mark.parametrize("setting", [{"error": 0.0}, {"error": 5}, {"confidence": 1.0}])
def test_shares_are_between_zero_and_one(run, setting):
    with pytest.raises(InvalidSetting, match="between 0 and 1"):
        certify(run, **setting)


def test_a_label_that_is_no_class_is_refused(run, audit):
    with pytest.raises(InvalidAudit, match="found 'cow'"):
        certify(run, {audit.file_names[0]: "cow"})
