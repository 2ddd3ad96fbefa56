"""`transduce doctor` tries what is installed: what works, what fails, how to mend it."""

import json
import shutil

import pytest

from benchmarks.small_hub import write_color_clip
from transduce.cli import doctor
from transduce.cli.self_checks import LIBRARIES, Library
from transduce.encoders.pinned import CLIP

SMALL = tuple(entry for entry in LIBRARIES if entry.distribution in ("onnxruntime", "PyYAML"))


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    """The libraries that import quickly, and an empty cache of models."""
    monkeypatch.setattr(doctor, "LIBRARIES", SMALL)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))


def test_what_works_is_tried(command):
    code, out, err = command("doctor")
    assert code == 0, out + err
    assert "shapes      ok, embedded one image and one word" in out
    assert "clip        not downloaded: transduce download clip" in out
    assert "Solving: ok" in out
    assert out.splitlines()[-1] == "Everything that is here works."


def test_a_library_that_does_not_import_is_told_with_the_command(command, tmp_path, monkeypatch):
    """A torchvision of another torch, pandas of another NumPy: their metadata say all is well."""
    (tmp_path / "site" / "yaml").mkdir(parents=True)
    (tmp_path / "site" / "yaml" / "__init__.py").write_text("raise ImportError('libyaml.so.2')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=":")
    code, out, _ = command("doctor")
    assert code == 1
    assert "FAILS: ImportError: libyaml.so.2" in out
    assert "mend it: pip install --force-reinstall PyYAML" in out
    assert out.splitlines()[-1] == "Not working: PyYAML"
    code, out, _ = command("doctor", "--json")
    [broken] = [entry for entry in json.loads(out)["libraries"] if entry["problem"]]
    assert (code, broken["library"]) == (1, "PyYAML")


def test_a_library_that_crashes_and_one_that_is_not_here(tmp_path, monkeypatch):
    (tmp_path / "crashes.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    crashed = doctor._library(Library("nothing", "PyYAML", "crashes", "yaml"))
    assert crashed["problem"].startswith("its process ended with code -11")
    absent = doctor._library(Library("nothing", "no-such-library", "nothing", "torch"))
    assert (absent["version"], absent["problem"]) == ("", "")
    assert absent["mend"] == 'pip install "transduce[torch]"'
    lost = doctor._library(Library("nothing", "no-such-library", "nothing"))
    assert lost["problem"] == "it comes with transduce, and is not here"


def test_weights_that_are_damaged_fail_with_the_way_out(command, tmp_path):
    snapshot = tmp_path / "home/hub/models--Xenova--clip-vit-base-patch32/snapshots" / CLIP.revision
    write_color_clip(tmp_path / "made")
    shutil.copytree(tmp_path / "made", snapshot)  # a tokenizer that is not OpenAI's
    code, out, _ = command("doctor")
    assert code == 1
    assert "clip        FAILS: InvalidEncoder: Expected the file of clip with SHA-256" in out
    assert "mend it: delete that file, then: transduce download clip" in out


@pytest.mark.parametrize("check", ["open_clip", "hf"])
def test_small_models_of_other_libraries_run(check):
    """Through the loaders, beside the torchvision of this machine, whatever its state."""
    answer = doctor._check(check)
    assert answer["ok"], answer["detail"]
