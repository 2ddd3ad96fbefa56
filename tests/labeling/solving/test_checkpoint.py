"""A run that was stopped while it was solved goes on from its last step."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.labeling.stores import NAMES, write_simulated
from transduce.labeling.pipeline import STATE, run_labeling
from transduce.labeling.settings import LabelSettings
from transduce.labeling.solving import checkpoint, solve
from transduce.labeling.solving.checkpoint import FileCheckpoint, fingerprint_of

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.labeling.stores import NAMES
from transduce.labeling.solving import checkpoint, solve
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.settings import LabelSettings

solve.ONE_CHUNK = 0
keep, kept = checkpoint.FileCheckpoint.keep, []

def keep_and_die(self, arrays):
    keep(self, arrays)
    kept.append(1)
    if len(kept) == 8:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.FileCheckpoint.keep = keep_and_die
folder = Path(sys.argv[1])
run_labeling(LabelSettings(source="", classes=NAMES, prompts=NAMES, encoder="",
             features=str(folder / "store"), folder=str(folder)), folder / "out")
"""


def test_a_killed_run_goes_on_at_its_last_step(tmp_path, monkeypatch):
    monkeypatch.setattr(solve, "ONE_CHUNK", 0)
    write_simulated(tmp_path / "store", images=120)
    settings = LabelSettings(
        source="", classes=NAMES, prompts=NAMES, encoder="",
        features=str(tmp_path / "store"), folder=str(tmp_path),
    )  # fmt: skip
    whole = run_labeling(settings, tmp_path / "whole")
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "out" / ".transduce-001" / STATE).exists()
    steps, keep = [], FileCheckpoint.keep
    monkeypatch.setattr(
        checkpoint.FileCheckpoint,
        "keep",
        lambda self, arrays: (steps.append(int(arrays["numbers"][0])), keep(self, arrays)),
    )
    resumed = run_labeling(settings, tmp_path / "out", resume=True)
    assert steps == [8, 9, 10, 11, 12]
    assert resumed.folder.name == "transduce-001"
    files = [{path.name for path in run.folder.iterdir()} for run in (resumed, whole)]
    assert files[0] == files[1]
    np.testing.assert_array_equal(resumed.labels.label, whole.labels.label)
    np.testing.assert_array_equal(resumed.probabilities(), whole.probabilities())


def test_what_another_batch_kept_or_half_a_file_is_not_read(tmp_path):
    state = FileCheckpoint(tmp_path / "state.npz", fingerprint_of("one", np.arange(3)))
    assert state.last() is None
    state.keep({"numbers": np.arange(4.0)})
    np.testing.assert_array_equal(state.last()["numbers"], np.arange(4.0))
    other = FileCheckpoint(state.path, fingerprint_of("one", np.arange(4)))
    assert other.last() is None
    state.path.write_bytes(state.path.read_bytes()[:100])
    assert state.last() is None


@pytest.mark.parametrize("other", [("two", [0, 1]), ("one", [1, 0]), ("one", [0.0, 1.0])])
def test_fingerprints_differ(other):
    words, array = other
    assert fingerprint_of("one", np.array([0, 1])) != fingerprint_of(words, np.array(array))
