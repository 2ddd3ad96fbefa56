"""The demo, small: what it prints and what it leaves."""

import csv
import sys

import pytest
from PIL import Image

from transduce import demo
from transduce.world import UNSEEN, name_of


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))


def test_it_leaves_pictures_and_labels_and_says_what_they_are(tmp_path, capsys):
    demo.main(["--folder", str(tmp_path), "--pictures", "60", "--classes", "4"])
    said = capsys.readouterr().out
    assert "drawn world" in said
    assert all(len(line) <= 80 for line in said.splitlines()[:-1])
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert len(pictures) == 60
    with Image.open(pictures[0]) as picture:
        assert picture.mode == "RGB"
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file_name"] for row in rows] == [f"pictures/{path.name}" for path in pictures]
    assert len({row["truth"] for row in rows}) <= 4
    assert {row["truth"] for row in rows} <= {name_of(pair) for pair in UNSEEN}
    for method in ("zero-shot", "hard-em-dirichlet"):
        right = [row["truth"] == row[method.replace("-", "_")] for row in rows]
        assert f"{sum(right) / len(right):.1%}" in next(
            line for line in said.splitlines() if method in line
        )


def test_a_second_run_replaces_the_first_and_spares_other_files(tmp_path, capsys):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "mine.png").write_bytes(b"")
    first = demo.run(tmp_path, pictures=30, classes=3, seed=1)
    again = demo.run(tmp_path, pictures=20, classes=3, seed=1)
    assert len(first) == len(again) == 2
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
