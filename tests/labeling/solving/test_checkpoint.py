"""A run that was stopped while it was solved goes on from its last step."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.labeling.stores import NAMES, write_simulated
from transduce.labeling.inputs import Listener
from transduce.labeling.pipeline import STATE, run_labeling
from transduce.labeling.settings import LabelSettings
from transduce.labeling.solving import checkpoint, large_mixtures, solve
from transduce.labeling.solving.checkpoint import FileCheckpoint, fingerprint_of

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.labeling.stores import NAMES
from transduce.labeling.solving import checkpoint, large_mixtures, solve
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.settings import LabelSettings

solve.ONE_CHUNK = large_mixtures.IN_MEMORY = 0
keep, kept = checkpoint.FileCheckpoint.keep, []

def keep_and_die(self, arrays):
    keep(self, arrays)
    kept.append(1)
    if len(kept) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.FileCheckpoint.keep = keep_and_die
folder = Path(sys.argv[1])
run_labeling(LabelSettings(source="", classes=NAMES, prompts=NAMES, encoder="", method=sys.argv[2],
             features=str(folder / "store"), folder=str(folder)), folder / "out")
"""


@pytest.fixture
def always_kept(monkeypatch):
    """The state of small batches is kept, too."""
    monkeypatch.setattr(solve, "ONE_CHUNK", 0)
    monkeypatch.setattr(large_mixtures, "IN_MEMORY", 0)


def settings_of(folder, method):
    """The settings of a run on a simulated store, which is made."""
    write_simulated(folder / "store", images=120)
    return LabelSettings(
        source="", classes=NAMES, prompts=NAMES, encoder="", method=method,
        features=str(folder / "store"), folder=str(folder),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "killed_after"), [("anchored", 8), ("em-dirichlet", 3), ("hard-em-dirichlet", 2)]
)
def test_a_killed_run_goes_on_at_its_last_step(
    method, killed_after, always_kept, tmp_path, monkeypatch
):
    settings = settings_of(tmp_path, method)
    steps, keep = [], FileCheckpoint.keep
    monkeypatch.setattr(
        checkpoint.FileCheckpoint,
        "keep",
        lambda self, arrays: (steps.append(list(arrays)), keep(self, arrays)),
    )
    whole = run_labeling(settings, tmp_path / "whole")
    all_steps, lines = len(steps), []
    words = [sys.executable, "-c", KILLED, tmp_path, method, str(killed_after)]
    killed = subprocess.run(words, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "out" / ".transduce-001" / STATE).exists()
    steps.clear()
    resumed = run_labeling(
        settings, tmp_path / "out", resume=True, listener=Listener(say=lines.append)
    )
    assert 0 < len(steps) == all_steps - killed_after
    assert not [line for line in lines if "state" in line]
    assert resumed.folder.name == "transduce-001"
    files = [{path.name for path in run.folder.iterdir()} for run in (resumed, whole)]
    assert files[0] == files[1]
    np.testing.assert_array_equal(resumed.labels.label, whole.labels.label)
    np.testing.assert_array_equal(resumed.probabilities(), whole.probabilities())
    before, after = whole.summary.batches[0], resumed.summary.batches[0]
    assert (after.iterations, after.objective) == (before.iterations, before.objective)


def test_the_state_of_older_code_is_said_and_solving_starts_anew(always_kept, tmp_path):
    settings = settings_of(tmp_path, "em-dirichlet")
    whole = run_labeling(settings, tmp_path / "whole")
    words = [sys.executable, "-c", KILLED, tmp_path, "em-dirichlet", "2"]
    subprocess.run(words, check=False, timeout=60)
    state = tmp_path / "out" / ".transduce-001" / STATE
    with np.load(state) as stored:
        older = {name: stored[name] for name in stored if name != checkpoint.WRITTEN_BY}
    np.savez(state, **older)
    # A run of a version that this one cannot read is neither resumed nor touched.
    other = tmp_path / "out" / ".transduce-007" / "run.toml"
    other.parent.mkdir()
    other.write_text('format = "transduce run"\nversion = 99\n')
    lines = []
    resumed = run_labeling(
        settings, tmp_path / "out", resume=True, listener=Listener(say=lines.append)
    )
    said = " ".join(lines)
    assert "was written by an older version" in said
    assert "Solving starts anew" in said
    assert f"{other.parent} is left as it is" in said
    assert other.exists()
    np.testing.assert_array_equal(resumed.probabilities(), whole.probabilities())


def test_what_another_batch_kept_or_half_a_file_is_not_read(tmp_path):
    lines = []
    one = fingerprint_of("one", np.arange(3))
    state = FileCheckpoint(tmp_path / "state.npz", one, lines.append)
    assert state.last() is None
    assert not lines
    state.keep({"numbers": np.arange(4.0)})
    np.testing.assert_array_equal(state.last()["numbers"], np.arange(4.0))
    assert state.last().keys() == {"numbers"}
    other = FileCheckpoint(state.path, fingerprint_of("one", np.arange(4)), lines.append)
    assert other.last() is None
    assert "of other images, classes or settings" in lines[-1]
    state.path.write_bytes(state.path.read_bytes()[:100])
    assert state.last() is None
    assert "not whole" in lines[-1]


@pytest.mark.parametrize("other", [("two", [0, 1]), ("one", [1, 0]), ("one", [0.0, 1.0])])
def test_fingerprints_differ(other):
    words, array = other
    assert fingerprint_of("one", np.array([0, 1])) != fingerprint_of(words, np.array(array))
