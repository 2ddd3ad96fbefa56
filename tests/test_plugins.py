"""A method in a package of its own, seen by an installed `transduce` through its entry point."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.drawings import CLASSES, write_drawings
from tests.cli.test_bench import SUITE
from transduce import METHODS

ROOT = Path(__file__).parents[1]
METHOD = '''"""Zero-shot probabilities, sharpened.

Made up for a test, 2026.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from transduce.methods.method import Support, accept
from transduce.task import Prediction, Space, Task, Trace


@dataclass(frozen=True, kw_only=True)
class SharpText:
    name: ClassVar[str] = "sharp-text"
    spaces: ClassVar[tuple[Space, ...]] = ("probability",)
    support: ClassVar[Support] = "unused"
    inductive: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {"power": (1.0, 2.0)}

    power: float = 1.0

    def predict(self, task: Task) -> Prediction:
        accept(self, task)
        raised = (task.zero_shot / task.zero_shot.max(1, keepdims=True)) ** self.power
        probabilities = (raised / raised.sum(1, keepdims=True)).astype(task.query.dtype)
        return Prediction(probabilities, Trace(objective=(), iterations=0, converged=True))
'''
ENTRY_POINTS = """[transduce.methods]
sharp-text = sharp_text:SharpText
broken-text = no_such_module:BrokenText
misnamed = sharp_text:SharpText
no-class = sharp_text:Mapping
zero-shot = sharp_text:SharpText
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder as pip would leave it: the module, and the metadata with its entry points."""
    site = tmp_path_factory.mktemp("site")
    (site / "sharp_text.py").write_text(METHOD)
    metadata = site / "sharp_text-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sharp-text\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return site


def python(site, program, *arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=200,
        env={**os.environ, "PYTHONPATH": f"{site}:{ROOT / 'src'}", "COLUMNS": "200"},
    )


def transduce(site, *arguments, cwd=None):
    program = "from transduce.cli.main import run_command_line; run_command_line()"
    return python(site, program, *arguments, cwd=cwd)


def test_it_is_listed_and_broken_ones_are_shown_as_unavailable(site):
    done = transduce(site, "list", "methods", "--json")
    assert done.returncode == 0, done.stderr
    rows = [(row["name"], row["about"]) for row in json.loads(done.stdout)["methods"]]
    about = dict(rows[1:-1])
    assert about["sharp-text"] == "one by one, no shots"
    assert about["hard-em-dirichlet"] == "jointly, shots optional"
    assert "unavailable: " in about["broken-text"]
    assert "package sharp-text, found ModuleNotFoundError" in about["broken-text"]
    assert "SharpText.name is 'sharp-text'" in about["misnamed"]
    assert "is no dataclass" in about["no-class"]
    assert [text for name, text in rows if name == "zero-shot"] == [
        "one by one, no shots",
        "unavailable: package sharp-text cannot replace a method of transduce",
    ]


def test_it_is_benchmarked(site, tmp_path):
    (tmp_path / "mine.toml").write_text(SUITE)
    done = transduce(
        site, "bench", "mine.toml", "--executor", "serial", "--method", "sharp-text", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [cell["label"] for cell in json.loads(done.stdout)["cells"] if cell["value"]] == [
        "sharp-text, probabilities"
    ]


def test_it_labels(site, tmp_path):
    drawings = write_drawings(tmp_path / "drawings")
    done = transduce(
        site, "label", drawings, "--classes", CLASSES, "--method", "sharp-text", "--workers", "1",
        "--encoder", "shapes", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "sharp-text" in (tmp_path / "out" / "transduce-001" / "run.toml").read_text()


def test_a_broken_one_asked_for_by_name_says_why(site, tmp_path):
    done = transduce(site, "bench", "smoke", "--method", "broken-text", cwd=tmp_path)
    assert done.returncode == 2
    program = "import transduce; transduce.METHODS['broken-text']"
    done = python(site, program)
    assert "MethodUnavailable: Expected a method 'broken-text' in package sharp-text" in done.stderr
    assert "No module named 'no_such_module'; repair or uninstall the package." in done.stderr


def test_its_package_is_not_imported_before_it_is_asked_for(site):
    program = """
import sys, transduce
transduce.METHODS["em-dirichlet"]
assert "sharp_text" not in sys.modules
assert transduce.METHODS["sharp-text"](power=2.0).power == 2.0
assert "broken-text" not in transduce.METHODS
assert len(transduce.METHODS) == len(list(transduce.METHODS)) == EXPECTED
try:
    transduce.METHODS["sharp-texd"]
except transduce.UnknownName as error:
    assert "did you mean 'sharp-text'" in str(error)
"""
    done = python(site, program.replace("EXPECTED", str(len(METHODS) + 1)))
    assert done.returncode == 0, done.stderr


def test_its_author_runs_the_contract_tests(site):
    program = """
from sharp_text import SharpText
from transduce.testing import check_method
check_method(SharpText)
check_method(lambda: SharpText(power=2.0))
"""
    done = python(site, program)
    assert done.returncode == 0, done.stderr
