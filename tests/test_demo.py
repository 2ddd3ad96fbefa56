"""The demo, small: what it prints and what it leaves."""

import csv
import sys

import pytest
from PIL import Image

from transduce import demo
from transduce.benchmark.synthetic import UNSEEN, name_of
from transduce.labeling.run_directory import RunDirectory


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))


def test_it_types_the_one_command_and_ends_with_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert demo.run(tmp_path, pictures=60, classes=4, seed=0) == 0
    said = capsys.readouterr().out
    assert "drawn world" in said
    assert "$ transduce label ./pictures --classes-file ./classes.txt" in said
    assert "Look at transduce-001/report.html" in said
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert len(pictures) == 60
    with Image.open(pictures[0]) as picture:
        assert picture.mode == "RGB"
    with (tmp_path / "truth.csv").open(newline="") as file:
        truth = {row["file_name"]: row["label"] for row in csv.DictReader(file)}
    assert set(truth) == {path.name for path in pictures}
    assert set(truth.values()) <= {name_of(pair) for pair in UNSEEN}
    run = RunDirectory.load(tmp_path / "transduce-001")
    assert len(run.classes) == len(UNSEEN)
    assert f"joint      {run.summary.evaluation.accuracy:6.1%}" in said


def test_a_second_run_draws_anew_and_spares_other_files(tmp_path, capsys):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "mine.png").write_bytes(b"")
    demo.draw_folder(tmp_path / "pictures", pictures=30, classes=3, seed=1)
    demo.draw_folder(tmp_path / "pictures", pictures=20, classes=3, seed=1)
    assert len(list((tmp_path / "pictures").glob("picture-*.png"))) == 20
    assert (tmp_path / "pictures" / "mine.png").exists()


@pytest.mark.parametrize("wrong", [["--pictures", "0"], ["--classes", "37"], ["--seed", "x"]])
def test_arguments_that_make_no_sense(wrong, capsys):
    with pytest.raises(SystemExit) as caught:
        demo.main(wrong)
    assert caught.value.code == 2


def test_without_onnxruntime_the_command_is_told_before_any_drawing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(SystemExit) as caught:
        demo.main(["--folder", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert 'default needs an extra: pip install "transduce[onnx]"' in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
