import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import transduce.encoders
from tests.features.stores import assert_same_store
from tests.features.tiny_encoder import TinyEncoder
from tests.images.pictures import write_pictures
from transduce.features.store import FeatureStore

ROOT = Path(__file__).parents[2]


@pytest.fixture
def photos(tmp_path):
    return write_pictures(tmp_path / "photos", 40)


@pytest.fixture
def transduce_command(monkeypatch, command):
    """The command line with an encoder that costs nothing."""

    def load_encoder(identifier, *, offline, device, batch_size, bar):
        return TinyEncoder(name=identifier, weights="offline" if offline else "0123")

    monkeypatch.setattr(transduce.encoders, "load_encoder", load_encoder, raising=False)
    return command


def test_summary_on_stdout_progress_on_stderr(photos, transduce_command):
    (photos / "00039.jpg").write_bytes((photos / "00000.jpg").read_bytes())
    (photos / "00038.jpg").write_bytes(b"")
    (photos / "notes.txt").write_text("not a picture")
    code, out, err = transduce_command("embed", "photos", "--out", "feats", "--workers", "1")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("Embedded 39 images with clip (8 numbers each) in ")
    assert lines[1:] == [
        "Skipped 1 (2.5%): 1 empty",
        "Exact duplicates of earlier images: 1",
        "Wrote feats/   img_emb/  metadata/  meta.json  skipped.csv  duplicates.csv",
        "Next: transduce features info feats",
    ]
    assert err.splitlines()[0] == "Found 40 images in photos (1 other file ignored)"
    assert "Embedding 40/40" in err
    assert "img/s" in err
    assert all(len(line) <= 80 for line in [*lines, *err.splitlines()])


def test_json_and_quiet(photos, transduce_command):
    code, out, err = transduce_command("embed", "photos", "--out", "feats", "--json", "--quiet")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert (summary["embedded"], summary["skipped"], summary["out"]) == (40, 0, "feats")
    code, out, err = transduce_command("embed", "photos", "--out", "other", "-q")
    assert (code, out, err) == (0, "", "")


def test_more_than_five_percent_skipped_is_exit_one(photos, transduce_command):
    for number in range(2):
        (photos / f"{number:05d}.jpg").write_bytes(b"")
    assert transduce_command("embed", "photos", "--out", "two")[0] == 0  # 5 % is not more
    (photos / "00002.jpg").write_bytes(b"")
    code, out, _ = transduce_command("embed", "photos", "--out", "three")
    assert code == 1
    assert "Skipped 3 (7.5%): 3 empty" in out


def test_the_same_command_again(photos, transduce_command):
    transduce_command("embed", "photos", "--out", "feats")
    code, _, err = transduce_command("embed", "photos", "--out", "feats")
    assert code == 0
    assert "feats/ is complete; nothing to embed" in err
    write_pictures(photos, 2, first=90)
    code, out, err = transduce_command("embed", "photos", "--out", "feats")
    assert (code, out) == (2, "")
    assert "found 2 new (00090.jpg, 00091.jpg)" in err
    again = ("embed", "photos", "--out", "feats", "--if-changed", "extend")
    code, out, err = transduce_command(*again)
    assert code == 0
    assert "Since the run began: 2 new" in err
    assert "Going on after 40 of 42 images" in err
    assert out.startswith("Embedded 2 images with clip")
    assert out.splitlines()[1] == "Together with the 40 of before: 42 images"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["embed", "phtoos", "--out", "f"], "found nothing at phtoos; check the spelling"),
        (["embed", "empty", "--out", "f"], "found none in empty; give a folder"),
        (["embed", "photos"], "Missing option '--out'"),
        (
            ["embed", "photos", "--out", "f", "--batch-size", "0"],
            "value for '--batch-size'",
        ),
        (["embed", "photos", "--out", "f", "--executor", "dask"], "'dask' is not one of"),
        (["embed", "photos", "--out", "f", "--worker", "3"], "No such option"),
        (["embed", "s3-photos://x/y", "--out", "f"], "Expected a URL that fsspec knows"),
        (["emebd", "photos"], "No such command 'emebd'"),
        (["features", "info", "photos"], "found no meta.json in photos"),
        (["features", "verify", "nowhere"], "found no meta.json in nowhere"),
    ],
)
def test_bad_input_is_exit_two_and_says_what_to_do(
    photos, tmp_path, transduce_command, words, message
):
    (tmp_path / "empty").mkdir()
    code, out, err = transduce_command(*words)
    assert (code, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())
    assert not (tmp_path / "f").exists()


def test_nothing_to_resume_is_said_and_begun_as_label_does(photos, transduce_command):
    code, out, err = transduce_command("embed", "photos", "--out", "feats", "--resume")
    assert code == 0
    assert "Nothing to resume in feats: this is a new run." in err
    assert out.startswith("Embedded 40 images")
    code, _, err = transduce_command("embed", "photos", "--out", "feats", "--resume")
    assert code == 0
    assert "Nothing to resume" not in err


def test_offline_reaches_the_encoder(photos, transduce_command):
    transduce_command("embed", "photos", "--out", "feats", "--offline")
    assert FeatureStore.open("feats").identity.weights == "offline"


def test_features_info_verify_and_merge(photos, tmp_path, transduce_command):
    transduce_command("embed", "photos", "--out", "feats")
    write_pictures(tmp_path / "more", 5, first=70)
    transduce_command("embed", "more", "--out", "feats2")
    code, out, _ = transduce_command("features", "info", "feats")
    assert code == 0
    assert out.splitlines()[0] == "feats/  40 images x 8 numbers"
    assert "  encoder     clip" in out
    code, out, _ = transduce_command("features", "info", "feats", "--json")
    assert json.loads(out)["identity"]["encoder"] == "clip"
    code, out, _ = transduce_command("features", "verify", "feats")
    assert (code, out.splitlines()[-1]) == (0, "Everything is in order.")
    code, out, _ = transduce_command("features", "merge", "feats", "feats2", "--out", "both")
    assert (code, out) == (0, "Wrote both/  45 images from 2 stores\n")
    transduce_command("embed", "more", "--out", "other", "--encoder", "tiny-two")
    code, out, err = transduce_command("features", "merge", "feats", "other", "--out", "no")
    assert (code, out) == (2, "")
    assert "Expected one encoder, found encoder clip in feats but tiny-two in other" in err
    (tmp_path / "both" / "img_emb" / "img_emb_0001.npy").unlink()
    code, out, _ = transduce_command("features", "verify", "both")
    assert (code, out.splitlines()[-1]) == (1, "  img_emb/img_emb_0001.npy is missing")


def heed_ctrl_c():
    """A shell's background job ignores SIGINT, and so would whatever it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_keeps_finished_shards_and_says_how_to_go_on(photos, tmp_path, transduce_command):
    words = ["embed", "photos", "--out", "feats", "--batch-size", "4", "--shard-size", "8"]
    command = [sys.executable, "-m", "tests.cli.run_with_tiny_encoder", *words]
    process = subprocess.Popen(
        command, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}:{ROOT}/src", "PATH": ""},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list((tmp_path / "feats" / "shards").glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    stopped, advice = err.splitlines()[-2:]
    done = FeatureStoreProgress(tmp_path / "feats").rows
    assert 8 <= done < 40
    assert stopped == f"Stopped. {done} of 40 images are safe in feats."
    assert advice == f"Go on with the same command: transduce {' '.join(words)}"
    code, out, err = transduce_command("features", "info", "feats")
    assert (code, out.splitlines()[0]) == (
        1, f"feats/  unfinished: {done} images in {done // 8} shards"
    )  # fmt: skip
    code, out, err = transduce_command(*words, "--resume")
    assert code == 0
    assert f"Going on after {done} of 40 images" in err
    words[3] = "whole"
    transduce_command(*words)
    assert_same_store(tmp_path / "feats", tmp_path / "whole")


class FeatureStoreProgress:
    """Rows in finished shards of an unfinished store."""

    def __init__(self, folder):
        records = [json.loads(path.read_text()) for path in (folder / "shards").glob("*.json")]
        self.rows = sum(record["shard"]["rows"] for record in records)
