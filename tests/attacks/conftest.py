import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import command  # noqa: F401 - the command line in this process
from tests.labeling.stores import NAMES, write_simulated
from transduce.labeling.pipeline import run_labeling
from transduce.labeling.report.page import write_report
from transduce.labeling.settings import LabelSettings


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def simulated(tmp_path_factory):
    """A feature store with the embeddings of its sentences, that nothing writes to."""
    folder = tmp_path_factory.mktemp("simulated") / "features"
    write_simulated(folder)
    return folder


@pytest.fixture(scope="session")
def finished_run(simulated, tmp_path_factory):
    """A run directory that nothing writes to."""
    settings = LabelSettings(
        source="", classes=NAMES, prompts=NAMES, features=str(simulated), encoder=""
    )
    out = tmp_path_factory.mktemp("run")
    return run_labeling(settings, out, complete=write_report).folder


@pytest.fixture
def small_disk():
    """Mount a file system of so many KB; skipped where that is not allowed."""
    mounted = []

    def mount(kilobytes):
        folder = Path(tempfile.mkdtemp(prefix="small-disk-"))
        made = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder]
        if os.name == "nt" or subprocess.run(made, capture_output=True).returncode:
            folder.rmdir()
            pytest.skip("a file system may be mounted by root alone")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()
