"""The demo, small: what it prints and what it leaves."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from transduce.benchmark.synthetic import UNSEEN, name_of
from transduce.cli import demo
from transduce.labeling.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))


def test_it_types_the_one_command_and_ends_with_a_report(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, said, _ = command("demo", "--out", str(tmp_path), "--images", "60", "--classes", "4")
    assert code == 0
    assert said.startswith("This world is drawn, not photographed")
    assert "$ transduce label ./images --classes-file ./classes.txt" in said
    assert "look      transduce-001/report.html" in said
    images = sorted((tmp_path / "images").iterdir())
    assert len(images) == 60
    with Image.open(images[0]) as image:
        assert image.mode == "RGB"
    with (tmp_path / "truth.csv").open(newline="") as file:
        truth = {row["file_name"]: row["label"] for row in csv.DictReader(file)}
    assert set(truth) == {path.name for path in images}
    assert set(truth.values()) <= {name_of(pair) for pair in UNSEEN}
    run = RunDirectory.load(tmp_path / "transduce-001")
    assert len(run.classes) == len(UNSEEN)
    assert f"of 60 labels are right, {run.summary.evaluation.accuracy:.1%} " in said


def test_the_readme_shows_what_it_prints(tmp_path, monkeypatch):
    """If not: python docs/generate_readme.py."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from generate_readme import PAGE, block_of, with_block

    done = subprocess.run(
        [sys.executable, "-m", "transduce", "demo"], cwd=tmp_path, text=True, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    readme = PAGE.read_text(encoding="utf-8")
    assert with_block(readme, block_of(done.stdout)) == readme


def test_a_second_run_draws_anew_and_spares_other_files(tmp_path, capsys):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.png").write_bytes(b"")
    demo.draw_folder(tmp_path / "images", images=30, classes=3, seed=1)
    demo.draw_folder(tmp_path / "images", images=20, classes=3, seed=1)
    assert len(list((tmp_path / "images").glob("drawn-*.png"))) == 20
    assert (tmp_path / "images" / "mine.png").exists()


@pytest.mark.parametrize("wrong", [["--images", "0"], ["--classes", "37"], ["--seed", "x"]])
def test_arguments_that_make_no_sense(wrong, command):
    assert command("demo", *wrong)[0] == 2


def test_the_option_knows_how_many_classes_there_are():
    assert len(UNSEEN) == demo.N_UNSEEN


def test_without_onnxruntime_the_command_is_named_before_any_drawing(
    tmp_path, monkeypatch, command
):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, _, err = command("demo", "--out", str(tmp_path / "out"))
    assert code == 2
    assert "shapes needs a library that comes with transduce: pip install" in err
    assert not (tmp_path / "out").exists()
