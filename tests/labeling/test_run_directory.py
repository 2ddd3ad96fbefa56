"""Run directories: numbered, whole, and of older versions."""

import json
import shutil
from pathlib import Path

import pytest

from transduce.errors import InvalidRun
from transduce.labeling.run_directory import RunDirectory, hidden_name, new_run_folder


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(InvalidRun, match="no such folder"):
        RunDirectory.load(tmp_path / "none")
    with pytest.raises(InvalidRun, match=r"no summary\.json"):
        RunDirectory.load(tmp_path)


def test_hidden_runs_keep_their_number(tmp_path):
    first = new_run_folder(tmp_path)
    assert hidden_name(first).is_dir()
    assert new_run_folder(tmp_path).name == "transduce-002"
    (tmp_path / "transduce-0x7").mkdir()
    assert new_run_folder(tmp_path).name == "transduce-003"


@pytest.fixture
def old_run(tmp_path):
    """A copy of a run that version 1 of the files wrote."""
    return shutil.copytree(Path(__file__).parent / "run_of_version_1", tmp_path / "transduce-001")


def test_a_run_of_an_older_version_is_read(old_run):
    run = RunDirectory.load(old_run)
    evaluation = run.summary.evaluation
    assert (evaluation.fixed, evaluation.broken) == (1, 1)  # "mended" in the file
    assert evaluation.accuracy == (run.labels.label == run.labels.truth).mean()
    assert run.summary.images == len(run.labels) == 24
    assert run.summary.batches[0].objective[-1] < run.summary.batches[0].objective[0]
    assert run.probabilities().shape == (24, 4)
    assert run.model().class_embeddings.shape == (4, 24)
    assert run.identity.encoder == "simulated"


def test_fields_of_other_versions_of_the_summary(old_run):
    path = old_run / "summary.json"
    data = json.loads(path.read_text())
    before = RunDirectory.load(old_run).summary
    path.write_text(json.dumps({**data, "of a later version": 1}))
    assert RunDirectory.load(old_run).summary == before
    for name in ("warnings", "seconds", "command", "version", "evaluation"):
        del data[name]
    path.write_text(json.dumps(data))
    assert RunDirectory.load(old_run).summary.evaluation is None
    path.write_text(json.dumps({**data, "images": "many"}))
    with pytest.raises(InvalidRun, match="at `images`"):
        RunDirectory.load(old_run)
