"""`transduce label` as it is typed: what it prints, what it refuses, how it ends."""

import csv
import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

from tests.cli.drawings import CLASSES, DRAWN, write_drawings
from tests.labeling.stores import NAMES, write_simulated, write_truth
from transduce.features.store import FeatureStore


def test_a_folder_from_images_to_report(command, drawings, tmp_path):
    photos = tmp_path / "my 'photos' 🦊 <b>"
    photos.mkdir()
    for image in sorted(drawings.iterdir()):
        (photos / f"{image.stem} <i>&'\".png").write_bytes(image.read_bytes())
    (photos / "copy.png").write_bytes((drawings / "000.png").read_bytes())
    code, out, err = command("label", photos, *DRAWN, "--workers", "1")
    assert code == 0, err
    assert err.splitlines()[0].startswith("Found 13 images in ")
    assert "0 unreadable, 1 exact duplicate\n" in err
    assert "13 images x 3 classes at once, about 1 MB of memory" in err
    assert out.splitlines()[0] == "Labeled   13 images with all of your 3 classes"
    assert "Twice     1 image is an exact copy of others" in out
    assert "look      out/transduce-001/report.html" in out
    assert "correct   transduce review out/transduce-001" in out
    assert "use       transduce export out/transduce-001 --to csv" in out
    assert "zero-shot" not in out  # nor any other word of the trade
    assert all(len(line) <= 80 for line in out.splitlines())
    with Path("out/transduce-001/labels.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["file_name"]: row for row in csv.DictReader(file)}
    assert rows["copy.png"]["duplicate_of"] == "000 <i>&'\".png" or (
        rows["000 <i>&'\".png"]["duplicate_of"] == "copy.png"
    )
    named = [rows[f"{number:03d} <i>&'\".png"]["label"] for number in range(12)]
    assert named == ["red circle", "blue square", "green star"] * 4
    page = Path("out/transduce-001/report.html").read_text(encoding="utf-8")
    assert "<i>&'" not in page
    modes = {p.name: p.stat().st_mode for p in Path("out/transduce-001").iterdir() if p.is_file()}
    assert len(set(modes.values())) == 1, modes  # who may read one may read all


def test_html_in_class_names_is_only_text(command, tmp_path):
    names = ["<script>alert(1)</script>", '"quoted"', "it's", "emoji 🦊"]
    write_simulated(tmp_path / "feats", images=30, classes=names)
    (tmp_path / "classes.json").write_text(json.dumps({name: name for name in names}))
    code, _, err = command("label", "--features", "feats", "--classes-file", "classes.json")
    assert code == 0, err
    page = Path("out/transduce-001/report.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    for form in ("label-studio", "cleanlab", "jsonl"):
        assert command("export", "out/transduce-001", "--to", form)[0] == 0
    code, _, err = command("export", "out/transduce-001", "--to", "fiftyone")  # it needs the images
    assert code == 2
    assert "at no known path; export to csv" in err
    from xml.etree import ElementTree

    config = ElementTree.parse("out/transduce-001-label-studio/config.xml")
    assert [choice.get("value") for choice in config.iter("Choice")] == [*names, "unknown"]


def test_the_run_file_does_it_again(command, tmp_path):
    truth = write_simulated(tmp_path / "feats", present=[0, 3, 5])
    write_truth(tmp_path / "truth.csv", truth)
    (tmp_path / "classes.txt").write_text("\n".join(NAMES))
    code, out, _ = command("label", "--features", "feats", "--classes-file", "classes.txt",
                           "--truth", "truth.csv", "--batch", "60", "--seed", "4",
                           "--details")  # fmt: skip
    assert code == 0
    assert "fixed" in out
    assert "McNemar" in out
    (tmp_path / "classes.txt").unlink()  # the run needs it no more
    os.chdir("/")
    code, _, _ = command("label", "--run", tmp_path / "out/transduce-001/run.toml", "--quiet",
                         "--out", tmp_path / "out")  # fmt: skip
    assert code == 0
    first = (tmp_path / "out/transduce-001/labels.csv").read_bytes()
    assert (tmp_path / "out/transduce-002/labels.csv").read_bytes() == first


def test_json_and_quiet(command, tmp_path):
    write_simulated(tmp_path / "feats", present=[0, 3, 5])
    words = ("label", "--features", "feats", "--classes", ",".join(NAMES))
    code, out, err = command(*words, "--json", "--quiet")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["run"] == "out/transduce-001"
    assert summary["images"] == 120
    assert sum(entry["joint"] for entry in summary["classes"]) == 120
    assert command(*words, "-q") == (0, "", "")


def test_shots_from_folders_and_from_corrections(command, drawings, tmp_path):
    for number, name in ((0, "red circle"), (1, "blue_square")):  # no shot of the third class
        folder = tmp_path / "shots" / name
        folder.mkdir(parents=True)
        (folder / "shot.png").write_bytes((drawings / f"{number:03d}.png").read_bytes())
    words = ("label", drawings, *DRAWN, "--workers", "1", "--json", "--quiet")
    code, out, _ = command(*words, "--support", "shots")
    assert code == 0
    assert json.loads(out)["method"] == "anchored"
    assert not Path("out/transduce-001/support").exists()
    Path("reviewed.csv").write_text("file_name,label\n000.png,green star\n001.png,unknown\n")
    code, out, _ = command(*words, "--support-from", "reviewed.csv")
    assert code == 0
    assert json.loads(out)["corrected"] == 2
    with Path("out/transduce-002/labels.csv").open(newline="") as file:
        labels = {row["file_name"]: row["label"] for row in csv.DictReader(file)}
    assert (labels["000.png"], labels["001.png"]) == ("green star", "unknown")


def test_unreadable_images_are_listed_and_counted(command, tmp_path):
    photos = write_drawings(tmp_path / "photos", 19)
    (photos / "empty.png").write_bytes(b"")
    words = ("label", "photos", *DRAWN, "--workers", "1")
    code, _, err = command(*words)
    assert code == 0  # 1 of 20 is not more than 5 %
    assert "1 unreadable" in err
    (photos / "cut.png").write_bytes((photos / "000.png").read_bytes()[:200])
    (photos / "clip.MOV").write_bytes(b"")
    code, out, err = command(*words)
    assert code == 1
    assert "Skipped   2 files (1 " in out
    assert "listed in\n          out/transduce-002/skipped.csv" in out
    assert "Left out  1 video" in out
    assert "Exit code 1: 2 of 21 files could not be read" in err
    with Path("out/transduce-002/skipped.csv").open(newline="") as file:
        assert {row["file_name"] for row in csv.DictReader(file)} == {"empty.png", "cut.png"}


def test_the_summary_is_for_everybody_and_details_for_who_asks(command, tmp_path):
    truth = write_simulated(tmp_path / "feats", present=[0, 3, 5])
    write_truth(tmp_path / "truth.csv", truth)
    words = ("label", "--features", "feats", "--classes", ",".join(NAMES), "--truth", "truth.csv")
    code, out, err = command(*words, "--resume")
    assert code == 0, err
    assert f"Nothing to resume in {tmp_path / 'out'}: this is a new run." in err
    assert "of 120 labels are right, " in out
    assert "to be wrong" in " ".join(out.split())
    assert "correct   transduce review out/transduce-001 --images FOLDER_OF_THEM" in out
    for word in ("zero-shot", "joint", "McNemar", "calibration", "recall", "converged", "Present"):
        assert word not in out
    code, out, _ = command(*words, "--details")
    for word in ("zero-shot", "joint", "McNemar", "calibration", "Present   ", "Time      "):
        assert word in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_one_image_alone_is_told_so_without_details(command, tmp_path):
    photos = write_drawings(tmp_path / "photos", 1)
    (photos / "broken.png").write_bytes(b"\x89PNG")
    code, out, _ = command("label", photos, *DRAWN, "--workers", "1")
    assert code == 1
    assert "Alone     a single image has no batch to learn from" in out
    for word in ("Method", "Present", "Changed", "Time", "zero-shot"):
        assert word not in out


def test_a_method_that_stops_before_it_settles_says_what_to_type(command, tmp_path):
    write_simulated(tmp_path / "feats", present=[0, 3, 5])
    words = ("label", "--features", "feats", "--classes", ",".join(NAMES),
             "--method", "em-dirichlet", "--json")  # fmt: skip
    _, out, _ = command(*words, "--iterations", "2")
    (warning,) = [text for text in json.loads(out)["warnings"] if "stopped" in text]
    assert "stopped after 2 iterations, before the answer settled; --iterations 20" in warning
    assert "iterations = 2\n" in Path("out/transduce-001/run.toml").read_text()
    _, out, _ = command(*words, "--iterations", "2000")
    summary = json.loads(out)
    assert summary["batches"][0]["converged"]
    assert 2 < summary["batches"][0]["iterations"] < 2000
    assert not [text for text in summary["warnings"] if "stopped" in text]
    # What is written repeats it.
    code, out, _ = command("label", "--run", "out/transduce-002/run.toml", "--json")
    assert code == 0
    assert json.loads(out)["batches"][0]["iterations"] == summary["batches"][0]["iterations"]


def test_folders_are_a_truth_and_a_class_has_several_names(command, drawings, tmp_path):
    for number in range(6):
        folder = tmp_path / "photos/2021" / ("Red_Circle", "blue box", "holiday")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.PNG").write_bytes((drawings / f"{number:03d}.png").read_bytes())
    names = {"red circle": "red circle", "blue square": ["blue square", "blue box"], "star": "star"}
    (tmp_path / "classes.json").write_text(json.dumps(names))
    words = ("label", "photos", "--classes-file", "classes.json", "--encoder", "shapes")
    code, out, err = command(*words, "--truth", "folders", "--workers", "1")
    assert code == 2  # the drawn world has no word for a box
    assert "box" in err
    names["blue square"] = ["blue square", "blue_square"]
    (tmp_path / "classes.json").write_text(json.dumps(names))
    code, out, err = command(*words, "--truth", "folders", "--workers", "1")
    assert code == 0, err
    assert "2 of 2 labels are right" in out
    code, _, err = command(*words, "--truth", "folders", "--workers", "1", "--run", "x")
    assert code == 2


def test_features_find_their_images(command, drawings, tmp_path):
    code, _, err = command("embed", drawings, "--encoder", "shapes", "--out", "feats")
    assert code == 0, err
    store = FeatureStore.open("feats")
    np.savez("mine.npz", embeddings=store.embeddings(), file_name=store.keys())
    words = ("label", "--features", "mine.npz", "--encoder", "shapes", "--classes", CLASSES)
    code, out, err = command(*words)
    assert code == 0, err
    assert "--images FOLDER_OF_THEM" in out
    page = Path("out/transduce-001/report.html").read_text(encoding="utf-8")
    assert "--images FOLDER" in page
    assert "image not found" not in page
    code, out, err = command(*words, "--images", drawings)
    assert code == 0, err
    assert "--images" not in out
    assert "data:image/jpeg" in Path("out/transduce-002/report.html").read_text(encoding="utf-8")
    code, _, err = command(*words, "--images", tmp_path / "feats")
    assert code == 2
    code, _, err = command("label", drawings, "--classes", CLASSES, "--images", drawings)
    assert code == 2
    assert "Expected --images together with --features" in err


def test_images_of_every_kind_are_labeled(command, drawings, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    image = Image.open(drawings / "000.png").convert("RGB")
    image.convert("RGBA").save(photos / "alpha.png")
    image.convert("CMYK").save(photos / "cmyk.jpg")
    image.convert("P").save(photos / "palette.gif", save_all=True,
                              append_images=[image.rotate(90).convert("P")])  # fmt: skip
    image.convert("L").convert("I;16").save(photos / "deep.png")
    turned = image.getexif()
    turned[0x0112] = 6
    image.save(photos / "turned.jpg", exif=turned)
    code, out, err = command("label", "photos", *DRAWN, "--workers", "1", "--json")
    assert code == 0, err
    assert json.loads(out)["images"] == 5
