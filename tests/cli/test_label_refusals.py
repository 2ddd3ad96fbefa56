"""`transduce label` as it is typed: what it refuses, and what little it still labels."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.drawings import CLASSES, DRAWN, write_drawings
from tests.cli.test_embed import heed_ctrl_c
from tests.labeling.stores import NAMES, rewrite_meta, write_simulated
from transduce.features.layout import read_meta

BAD = [
    (["label"], "found neither"),
    (["label", "photos"], "--classes or --classes-file, found neither"),
    (["label", "nowhere", *DRAWN], "found nothing at nowhere"),
    (["label", "empty", *DRAWN], "found none in empty"),
    (["label", "photos", "--classes", "cat"], "at least 2 classes"),
    (["label", "photos", "--classes", "cat,dog,Cat"], "written more than once"),
    (["label", "photos", *DRAWN, "--method", "em-dirichlett"], "em-dirichlet'?"),
    (["label", "photos", "--classes", CLASSES, "--encoder", "shape"], "'shapes'?"),
    (
        ["label", "photos", "--classes", "cat,dog", "--encoder", "shapes"],
        "words this encoder knows",
    ),
    (["label", "photos", *DRAWN, "--batch", "many"], "whole number or all"),
    (["label", "photos", *DRAWN, "--batch", "0"], "at least 1"),
    (["label", "photos", *DRAWN, "--classes-present", "x"], "auto or all"),
    (["label", "photos", *DRAWN, "--min-score", "2"], "between 0 and 1"),
    (["label", "photos", *DRAWN, "--iterations", "50"], "found --method auto; leave it out"),
    (
        ["label", "photos", *DRAWN, "--method", "zero-shot", "--iterations", "50"],
        "choose one of em-dirichlet,",
    ),
    (
        ["label", "photos", *DRAWN, "--method", "em-dirichlet", "--iterations", "-1"],
        "at least 1, or 0",
    ),
    (["label", "photos", *DRAWN, "--template", "a photo"], "{} where the class"),
    (["label", "photos", *DRAWN, "--truth", "no.csv"], "no.csv; check the path"),
    (["label", "photos", *DRAWN, "--support-from", "no.csv"], "no.csv; check"),
    (["label", "photos", *DRAWN, "--support", "empty"], "found none in"),
    (["label", "photos", *DRAWN, "--features", "x"], "found both"),
    (["label", "--features", "photos", "--classes", CLASSES], "found neither in"),
    (
        ["label", "photos", *DRAWN, "--method", "paddle"],
        "support for paddle",
    ),
    (["label", "photos", *DRAWN, "--truth", "wrong.csv"], "found none of their"),
    (["label", "photos", *DRAWN, "--support-from", "wrong.csv"], "'000.png'?"),
    (["label", "photos", *DRAWN, "--support", "bad"], "beside them"),
    (["label", "--run", "no.toml"], "found no no.toml"),
    (["label", "photos", "--run", "x.toml"], "--run alone"),
    (["label", "bad", *DRAWN], "found none: 1 empty"),
    (["label", "photos", "--classes-file", "no.txt"], "found no no.txt"),
    (["export", "nowhere", "--to", "csv"], "no such folder"),
    (["export", "photos", "--to", "csvv"], "'csv'?"),
]


@pytest.mark.parametrize(("words", "problem"), BAD, ids=lambda value: str(value)[:60])
def test_bad_input_is_exit_two_and_says_what_to_do(command, drawings, tmp_path, words, problem):
    Path("photos").symlink_to(drawings)
    Path("empty").mkdir()
    Path("bad").mkdir()
    Path("bad/empty.png").write_bytes(b"")
    Path("wrong.csv").write_text("file_name,label\n000.jpg,red circle\n")
    code, out, err = command(*words)
    last = err[err.index("Error: ") :]
    assert code == 2
    assert out == ""
    assert problem in last
    assert "Traceback" not in err
    left = list(Path("out").iterdir()) if Path("out").exists() else []
    assert left == []


def test_fewer_images_than_classes_runs_and_warns(command, tmp_path):
    write_simulated(tmp_path / "feats", images=5)
    code, out, _ = command("label", "--features", "feats", "--classes", ",".join(NAMES))
    assert code == 0
    assert "fewer images (5) than classes (12)" in " ".join(out.split())


def test_one_image_is_labeled_zero_shot_and_that_is_said(command, tmp_path):
    write_drawings(tmp_path / "photos", 1)
    code, out, _ = command("label", "photos", *DRAWN, "--details")
    assert code == 0
    assert "zero-shot: a single image has no batch" in out


def test_features_of_the_same_width_but_another_encoder(command, tmp_path):
    write_simulated(tmp_path / "feats")
    write_simulated(tmp_path / "other")
    identity = read_meta(tmp_path / "feats").identity
    rewrite_meta(tmp_path / "feats", replace(identity, weights="retrained"))
    code, _, err = command("label", "--features", "feats", "--classes", ",".join(NAMES),
                           "--encoder", "precomputed:other")  # fmt: skip
    assert code == 2
    assert "found weights retrained" in err


def test_ctrl_c_keeps_what_was_embedded(tmp_path):
    write_drawings(tmp_path / "photos", 16)
    words = [sys.executable, str(Path(__file__).with_name("label_slowly.py")), "label", "photos",
             *DRAWN, "--workers", "1", "--batch-size", "4"]  # fmt: skip
    environment = {**os.environ, "TRANSDUCE_CACHE": str(tmp_path / "cache")}
    started = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True,
                               preexec_fn=heed_ctrl_c)  # fmt: skip
    shards = tmp_path / "out/.transduce-001/features/shards"
    deadline = time.monotonic() + 60
    while not (shards.is_dir() and any(shards.glob("*.json"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 130, err
    assert "--resume" in err
    assert not (tmp_path / "out/transduce-001").exists()
    done = subprocess.run([*words, "--resume"], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Going on after" in done.stderr
    assert (tmp_path / "out/transduce-001/labels.csv").is_file()


@pytest.mark.parametrize("bad", ["nan", "inf", "zero norm"])
def test_features_that_are_no_embeddings_are_refused_by_name(command, tmp_path, bad):
    write_simulated(tmp_path / "feats")
    shard = tmp_path / "feats/img_emb/img_emb_0000.npy"
    rows = np.load(shard)
    rows[7] = 0.0 if bad == "zero norm" else float(bad)
    np.save(shard, rows)
    rewrite_meta(tmp_path / "feats")
    code, _, err = command("label", "--features", "feats", "--classes", ",".join(NAMES))
    assert code == 2
    assert "row 7 (image-0007.jpg)" in err
    assert list(Path("out").iterdir()) == []


def test_too_little_memory_names_a_batch_that_fits(command, tmp_path, monkeypatch):
    from transduce.labeling import pipeline

    def full(*arguments):
        raise MemoryError

    write_simulated(tmp_path / "feats")
    monkeypatch.setattr(pipeline, "solve", full)
    code, _, err = command("label", "--features", "feats", "--classes", ",".join(NAMES))
    assert code == 2
    assert "--batch 60" in err


def test_an_onnx_folder_that_is_not_here(command, drawings):
    code, _, err = command("label", drawings, "--classes", CLASSES, "--encoder", "onnx:nowhere")
    assert code == 2
    assert "transduce export-onnx" in err


@pytest.mark.parametrize("encoder", ["open_clip:ViT-B-32/openai", "hf:openai/no-such-clip"])
def test_weights_that_are_not_here_offline(command, drawings, tmp_path, monkeypatch, encoder):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    code, _, err = command("label", drawings, "--classes", CLASSES, "--encoder", encoder,
                           "--offline")  # fmt: skip
    assert code == 2
    assert f"Expected the weights of {encoder} in the cache" in err
    assert "leave --offline out" in err
    assert "Traceback" not in err


def test_a_torchvision_of_another_torch(command, drawings, broken_import):
    broken_import("open_clip", RuntimeError("operator torchvision::nms does not exist"))
    code, _, err = command("label", drawings, "--classes", CLASSES, "--encoder",
                           "open_clip:ViT-B-32/openai")  # fmt: skip
    assert code == 2
    assert "pip install --force-reinstall" in err
    assert "Traceback" not in err
