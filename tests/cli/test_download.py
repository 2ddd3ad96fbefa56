"""`transduce download` and `label` with a hub on this machine, and without one."""

import json
import tomllib
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.small_hub import serve_hub, write_color_clip

COMMIT, NAME = "0123456789abcdef0123456789abcdef01234567", "tiny/color-clip"
ENCODER = f"onnx-hub:{NAME}"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    repository = write_color_clip(tmp_path / "repository")
    with serve_hub({NAME: (repository, COMMIT)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, color in enumerate(["red", "lime", "blue"] * 4):
        Image.new("RGB", (30, 20 + number), color).save(folder / f"{number:02d} {color}.png")
    return folder


def test_images_are_labeled_with_a_model_that_was_not_here(command, hub, photos):
    words = ("label", "photos", "--classes", "red,green,blue", "--workers", "1")
    code, _, err = command(*words, "--encoder", ENCODER)
    assert code == 0, err
    assert f"Downloading {ENCODER}, once (0.0 MB)" in err
    run = Path("out/transduce-001")
    rows = (run / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert all(("green" if "lime" in row else row[3:].partition(".")[0]) in row.split(",")[1]
               for row in rows)  # fmt: skip
    assert len(rows) == 12
    assert tomllib.loads((run / "run.toml").read_text())["encoder"] == ENCODER
    recorded = json.loads((run / "features" / "meta.json").read_text())["identity"]
    assert recorded["origin"].startswith(f"{NAME}@{COMMIT}: onnx/vision_model.onnx sha256:")
    asked = len(hub.asked)
    code, _, err = command(*words, "--encoder", ENCODER, "--offline")
    assert (code, len(hub.asked)) == (0, asked), err


def test_download_then_list(command, hub):
    code, out, err = command("download", ENCODER)
    assert code == 0, err
    assert out.startswith(f"{ENCODER} is here and whole: 5 files, 0.0 MB, in ")
    code, out, _ = command("download", ENCODER, "--json", "--quiet")
    assert json.loads(out)["encoders"][0]["revision"] == COMMIT
    code, out, _ = command("download", "--list")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert "not here" in lines["clip"]
    assert lines["clip"].split()[-1] == "Xenova/clip-vit-base-patch32"
    assert set(lines) == {"clip", "clip-q8", "dinov2", "dinov2-q8"}
    assert command("download", "shapes")[0] == 0  # nothing to get, and it works


def test_the_pinned_checksum_refuses_another_file(command, hub, tmp_path, monkeypatch):
    from transduce.encoders.pinned import CLIP

    repository = tmp_path / "repository"
    with serve_hub({CLIP.repository: (repository, CLIP.revision)}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        code, _, err = command("download")
    assert code == 2
    assert f"with checksum {CLIP.files['preprocessor_config.json']}, found" in err


@pytest.mark.parametrize("words", [("label", "photos", "--classes", "cat,dog"), ("download",)])
def test_without_a_network_one_line_says_what_to_do(command, photos, monkeypatch, words, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith("Error: Expected the weights of clip from 127.0.0.1:9, found no network")
    assert "(transduce download clip)" in line
    assert not Path("out").exists()
