"""What an audit says stays out of what labels are made from."""

import numpy as np
import pytest

from tests.labeling.stores import NAMES, write_simulated
from transduce import LabelSettings, certify, read_certificate
from transduce.labeling.journal import Journal
from transduce.labeling.pipeline import run_labeling, solve_again
from transduce.labeling.trust.audit import draw_audit, fingerprint, read_audit


@pytest.fixture
def labeled(tmp_path):
    truth = write_simulated(tmp_path / "features")
    settings = LabelSettings(
        source="", classes=NAMES, prompts=NAMES, features=str(tmp_path / "features"), encoder=""
    )
    return run_labeling(settings, tmp_path / "out"), truth


def audited(run, truth, size=40):
    audit = draw_audit(run, size, seed=1)
    certify(
        run,
        {name: NAMES[truth[row]] for row, name in zip(audit.rows, audit.file_names, strict=True)},
    )
    return audit


def test_doubts_find_wrong_labels(labeled):
    run, truth = labeled
    wrong = run.labels.label != truth
    doubted = np.argsort(-run.doubt, kind="stable")[:24]
    assert wrong[doubted].mean() > 1.5 * wrong.mean()
    assert run.labels.needs_review[run.doubt >= 0.1].all()


def test_solving_again_keeps_the_audit_out_and_has_no_certificate(labeled):
    run, truth = labeled
    audit = audited(run, truth)
    corrected = next(row for row in range(120) if row not in audit.rows)
    answer = {run.labels.file_name[corrected]: NAMES[truth[corrected]]}
    Journal.open(run.folder).append("review", *next(iter(answer.items())))
    again = solve_again(run, answer)
    assert np.flatnonzero(again.labels.corrected).tolist() == [corrected]
    assert read_audit(again) is None
    assert read_certificate(again) is None
    assert corrected not in draw_audit(again, 100).rows
    assert read_certificate(run).void == ""  # the old run is as it was


def test_answers_of_another_run_are_void(labeled):
    """A journal that is carried over to labels made with its audited answers."""
    run, truth = labeled
    audit = audited(run, truth)
    shots = {
        name: NAMES[truth[row]] for row, name in zip(audit.rows, audit.file_names, strict=True)
    }
    again = solve_again(run, shots)
    for name in ("answers.jsonl", "certificate.json"):
        (again.folder / name).write_bytes((run.folder / name).read_bytes())
    assert fingerprint(again) != fingerprint(run)
    assert "labels" in read_audit(again).void
    assert "labels changed" in read_certificate(again).void
    assert not read_certificate(again).certified.any()
