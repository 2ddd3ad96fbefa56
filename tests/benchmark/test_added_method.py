"""What adding a method costs: one file with one class, and its line in the catalogue."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = '''"""Nearest text, sharpened: zero-shot with a power to tune.

Made up for a test, 2026. It raises the zero-shot probabilities to a power.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from transduce.methods.method import Support, accept
from transduce.task import Prediction, Space, Task, Trace


@dataclass(frozen=True, kw_only=True)
class Sharpened:
    name: ClassVar[str] = "sharpened"
    spaces: ClassVar[tuple[Space, ...]] = ("probability",)
    support: ClassVar[Support] = "unused"
    inductive: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {"power": (1.0, 2.0)}

    power: float = 1.0

    def predict(self, task: Task) -> Prediction:
        accept(self, task)
        raised = (task.zero_shot / task.zero_shot.max(1, keepdims=True)) ** self.power
        probabilities = raised / raised.sum(1, keepdims=True)
        trace = Trace(objective=(), iterations=0, converged=True)
        return Prediction(probabilities=probabilities.astype(task.query.dtype), trace=trace)
'''
# The catalogue line, as it would stand in methods/__init__.py; everything after it is the library.
PROGRAM = """
import sys
from transduce import methods
from sharpened import Sharpened
methods.METHODS._entries[Sharpened.name] = Sharpened  # the catalogue line

if sys.argv[1] == "contracts":
    import pytest
    # The library is imported before pytest could rewrite asserts in the plugins it brings.
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    sys.exit(pytest.main([*quiet, "tests/contracts", "-k", "sharpened"]))
from pathlib import Path
from tests.benchmark.small_features import run_suite, small_suite
from transduce.benchmark.executors import make_executor
from transduce.benchmark.suite_files import load_suite
from transduce.benchmark.report.tables import terminal
from transduce.benchmark.report.suite_report import report_suite

assert "sharpened" in methods.METHODS
assert "sharpened" in {row.method for row in load_suite("real").rows}
suite = small_suite("zero-shot", "sharpened")
outcome = run_suite(suite, Path(sys.argv[2]), make_executor("joblib", workers=2))
print(terminal(report_suite(suite, outcome, "transduce bench")))
tuned = [result for result in outcome.results.values() if result.tuning is not None]
tried = [candidate.settings for candidate in tuned[0].tuning.candidates]
assert tried == [{"power": 1.0}, {"power": 2.0}]
"""


def run(tmp_path: Path, *arguments: str) -> str:
    (tmp_path / "sharpened.py").write_text(FILE)
    folders = (tmp_path, ROOT / "src", ROOT, ROOT / "tests")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_appears_in_list_bench_and_tuning(tmp_path):
    table = run(tmp_path, "bench", str(tmp_path / "out"))
    assert table.count("sharpened") == 2  # zero-shot and 4-shot


def test_is_checked_by_the_contract_tests(tmp_path):
    assert " passed" in run(tmp_path, "contracts")
