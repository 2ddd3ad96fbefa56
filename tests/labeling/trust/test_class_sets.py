from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.labeling.trust.audited_runs import CLASSES, run_with_doubts, true_answers
from transduce.errors import InvalidAudit, InvalidRun, InvalidSetting
from transduce.labeling.journal import Journal
from transduce.labeling.run_directory import RunDirectory
from transduce.labeling.trust.audit import draw_audit
from transduce.labeling.trust.certificate import certify
from transduce.labeling.trust.class_sets import (
    class_scores,
    conformal_threshold,
    prediction_sets,
    read_sets,
    write_sets,
)

METHODS = ("lac", "aps")


@pytest.fixture
def run(tmp_path):
    return run_with_doubts(tmp_path)


def audited(run, size=100, seed=1):
    audit = draw_audit(run, size, seed=seed)
    certify(run, true_answers(run, audit))
    return audit


def test_scores_by_hand():
    rows, part = np.float32([[0.5, 0.2, 0.3]]), np.array([0.5])
    np.testing.assert_allclose(class_scores(rows, "lac", part), [[0.5, 0.8, 0.7]], atol=1e-6)
    np.testing.assert_allclose(class_scores(rows, "aps", part), [[0.25, 0.9, 0.65]], atol=1e-6)
    whole = class_scores(rows, "aps", np.ones(1))
    np.testing.assert_allclose(whole, [[0.5, 1.0, 0.8]], atol=1e-6)


def test_the_threshold_is_the_conformal_quantile():
    scores = np.arange(1.0, 10.0)  # nine of them
    assert conformal_threshold(scores, 0.9) == 9.0
    assert conformal_threshold(scores, 0.5) == 5.0
    assert conformal_threshold(scores, 0.95) == np.inf


@pytest.mark.parametrize("method", METHODS)
def test_coverage_over_many_audits(method):
    """Exchangeable scores: 2,000 calibrations cover a new image in 90 %, seen in 88 to 93 %."""
    random = np.random.default_rng(0)
    rows = random.dirichlet(np.full(5, 0.5), 4000).astype(np.float32)
    truth = np.array([random.choice(5, p=row / row.sum()) for row in rows.astype(float)])
    scores = class_scores(rows, method, random.random(4000))[np.arange(4000), truth]
    covered = []
    for _ in range(2000):
        drawn = random.choice(4000, 101, replace=False)
        covered.append(scores[drawn[0]] <= conformal_threshold(scores[drawn[1:]], 0.9))
    assert 0.88 <= np.mean(covered) <= 0.93


@pytest.mark.parametrize("method", METHODS)
def test_sets_hold_the_truth(run, method):
    audit = audited(run)
    sets = prediction_sets(run, 0.9, method)
    rest = np.setdiff1d(np.arange(300), audit.rows)
    held = [CLASSES[run.labels.truth[row]] in sets[row] for row in rest]
    assert np.mean(held) > 0.85
    assert sets.sizes.min() >= 1
    assert sets.sizes.mean() < 2.5
    assert all(sets[row][0] == CLASSES[run.labels.label[row]] for row in rest)


def test_they_are_kept_in_a_file(run):
    audited(run)
    sets = prediction_sets(run, 0.9)
    stored = pq.read_table(write_sets(run, sets))
    assert stored["file_name"].to_pylist() == list(run.labels.file_name)
    assert [tuple(names) for names in stored["classes"].to_pylist()] == list(sets)
    assert stored.schema.metadata[b"coverage"] == b"0.9"
    assert stored.schema.metadata[b"method"] == b"lac"


@pytest.mark.parametrize("method", METHODS)
def test_they_are_read_as_they_were_written(run, method):
    assert read_sets(run) is None
    audited(run)
    sets = prediction_sets(run, 0.9, method)
    write_sets(run, sets)
    read = read_sets(run)
    assert list(read) == list(sets)
    assert (read.coverage, read.method) == (0.9, method)
    assert read.threshold == sets.threshold
    np.testing.assert_array_equal(read.sizes, sets.sizes)


def test_sets_of_other_labels_are_not_read(run):
    audited(run)
    write_sets(run, prediction_sets(run))
    other = replace(run, labels=replace(run.labels, doubt=run.labels.doubt + 0.01))
    assert read_sets(other) is None


@pytest.mark.parametrize("size", [0, 100, -8])
def test_a_damaged_file_is_said_to_be_one(run, size):
    audited(run)
    path = write_sets(run, prediction_sets(run))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InvalidRun, match="make them again: transduce certify"):
        read_sets(run)


@pytest.mark.parametrize("names", [["wolf"], None])
def test_sets_of_other_classes_or_images_are_refused(run, names):
    audited(run)
    path = write_sets(run, prediction_sets(run))
    table = pq.read_table(path)
    lists = [names or ["cat"]] * (300 if names else 299)
    changed = pa.table({"classes": lists}).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, path)
    with pytest.raises(InvalidRun, match="of another run"):
        read_sets(run)


def test_the_labels_have_them_too(run):
    audited(run)
    path = run.folder / "labels.parquet"
    before = pq.read_table(path)
    for coverage in (0.9, 0.6):  # the second takes the place of the first
        sets = prediction_sets(run, coverage)
        write_sets(run, sets)
        after = pq.read_table(path)
        assert [tuple(names) for names in after["classes"].to_pylist()] == list(sets)
        assert after.drop_columns("classes").equals(before)
    again = RunDirectory.load(run.folder)
    np.testing.assert_array_equal(again.probabilities(), run.probabilities())


def test_of_many_row_groups_too(run):
    audited(run)
    path = run.folder / "labels.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=70)
    sets = prediction_sets(run)
    write_sets(run, sets)
    assert pq.read_metadata(path).num_row_groups == 5
    assert [tuple(names) for names in pq.read_table(path)["classes"].to_pylist()] == list(sets)


def test_a_set_is_found_by_its_row(run):
    audited(run)
    sets = prediction_sets(run)
    assert sets[-1] == sets[len(sets) - 1]
    with pytest.raises(IndexError):
        sets[300]


def test_without_a_finished_audit_there_are_none(run):
    with pytest.raises(InvalidAudit, match="found none"):
        prediction_sets(run)
    draw_audit(run, 10)
    with pytest.raises(InvalidAudit, match="10 not answered"):
        prediction_sets(run)


def test_too_small_an_audit_is_refused(run):
    audited(run, size=8)
    with pytest.raises(InvalidAudit, match="8 images"):
        prediction_sets(run, 0.9)


def test_images_of_none_of_the_classes_are_not_covered(run):
    audit = draw_audit(run, 30)
    journal = Journal.open(run.folder)
    for name in audit.file_names:
        journal.append("audit", name, "unknown")
    with pytest.raises(InvalidAudit, match="30 of them of none of the classes"):
        prediction_sets(run, 0.9)


@pytest.mark.parametrize("bad", [{"coverage": 1.0}, {"method": "raps"}])
def test_what_cannot_be_asked(run, bad):
    with pytest.raises(InvalidSetting):
        prediction_sets(run, **bad)
