"""The Python of the README and the docs: it type-checks in a user's file, and the README's runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What the samples take for granted: arrays and names of the reader's own.
READERS_OWN = """\
import numpy as np
from numpy.typing import NDArray

images: NDArray[np.float32]
new_images: NDArray[np.float32]
class_embeddings: NDArray[np.float32]
shots: NDArray[np.float32]
labels: NDArray[np.int64]
y: NDArray[np.int64]

"""
CATALOGUE = """\
from transduce import METHODS, Prediction, Task

def soft(task: Task) -> Prediction:
    return METHODS["em-dirichlet"](classes_present="all").predict(task)
"""


def blocks(page):
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def test_the_samples_type_check_in_a_users_file(tmp_path):
    """mypy --strict as a user runs it: no configuration of ours, the package as installed."""
    readme = blocks("README.md")
    assert len(readme) == 1
    few_shot = [READERS_OWN + text for text in blocks("docs/few_shot.md") if "tower" not in text]
    assert len(few_shot) == 2
    for number, text in enumerate([*readme, *few_shot, CATALOGUE]):
        (tmp_path / f"right_{number}.py").write_text(text, encoding="utf-8")
    wrong = "import transduce\n\ntransduce.EMDirichlet(clases_present=3)\n"
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache", "."]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1, done.stdout + done.stderr
    assert errors[0].startswith("wrong.py:3: error: Unexpected keyword argument")


@pytest.fixture
def photos(tmp_path):
    """A folder with drawings that the encoder `shapes` knows the words for."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, color in enumerate(["red", "blue", "red", "green", "blue", "green"]):
        image = Image.new("RGB", (64, 64), "gray")
        ImageDraw.Draw(image).ellipse((12, 12, 52, 52), fill=color)
        image.save(folder / f"{number}.png")
    return folder


def test_the_readmes_lines_run(photos, tmp_path):
    program = blocks("README.md")[0].replace('"clip"', '"shapes"')
    program = program.replace(
        '["cat", "dog", "fox"]', '["red circle", "blue circle", "green circle"]'
    )
    program += "\nprint(prediction.labels.tolist())\nprint(labels.names)\n"
    path = tmp_path / "sample.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    jointly, names = done.stdout.splitlines()
    assert jointly == "[0, 1, 0, 2, 1, 2]"
    assert names == str([f"{c} circle" for c in ("red", "blue", "red", "green", "blue", "green")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos", "sample.py"]


def test_the_table_of_gains_is_that_of_the_results():
    """Every number of the README's table stands in results/regimes/tables.md, method by method."""
    names = {
        "CLIP, one by one": "zero-shot",
        "Hard EM-Dirichlet (CVPR 2024)": "Hard EM-Dirichlet",
        "StatA (CVPR 2025)": "StatA",
        "MOON, likelihood x 0.001": "MOON, likelihood x 0.001",
        "**`anchored`, the default**": "anchored",
    }
    tables = (ROOT / "results/regimes/tables.md").read_text(encoding="utf-8")
    accuracy, calibration = (
        cells_of(tables.partition(title)[2].partition("\n## ")[0])
        for title in ("## Accuracy, %", "## Expected calibration error")
    )
    gains = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What it gains")[2]
    shown = cells_of(gains.partition("\n## ")[0])
    regimes = ("b64_1-4", "p75_3-10", "b1k_25-50", "full", "all cells")
    for written, name in names.items():
        expected = [accuracy[name][accuracy["method"].index(regime)] for regime in regimes]
        assert shown[written] == [*expected, calibration[name][-1]]


def cells_of(table):
    """The cells of each row of a Markdown table, by its first cell."""
    lines = [line.strip("| ") for line in table.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_the_photographs_are_labeled_as_recorded():
    recorded = (ROOT / "results/install.md").read_text(encoding="utf-8")
    printed = recorded[recorded.index("$ transduce label photos") :]
    printed = printed[: printed.index("\n$ transduce label", 1)].rstrip()
    assert f"```text\n{printed}\n```" in (ROOT / "README.md").read_text(encoding="utf-8")
