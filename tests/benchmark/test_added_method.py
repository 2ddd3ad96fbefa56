"""What adding a method costs: one file, as docs/adding.md shows it, and its catalogue line."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
FILE = re.search(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)[1]  # the whole file shown there
# The catalogue line, as it would stand in methods/__init__.py; everything after it is the library.
PROGRAM = """
import sys
from transduce import methods
from tuned_k_means import TunedKMeans
methods.METHODS._entries[TunedKMeans.name] = TunedKMeans  # the catalogue line

if sys.argv[1] == "contracts":
    import pytest
    # The library is imported before pytest could rewrite asserts in the plugins it brings.
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    sys.exit(pytest.main([*quiet, "tests/contracts", "-k", "tuned-k-means"]))
from pathlib import Path
from tests.benchmark.small_features import run_suite, small_suite
from transduce.benchmark.executors import make_executor
from transduce.benchmark.suite_files import load_suite
from transduce.benchmark.report.tables import terminal
from transduce.benchmark.report.suite_report import report_suite

assert "tuned-k-means" in methods.METHODS
assert "tuned-k-means" in {row.method for row in load_suite("real").rows}
suite = small_suite("zero-shot", "tuned-k-means")
outcome = run_suite(suite, Path(sys.argv[2]), make_executor("joblib", workers=2))
print(terminal(report_suite(suite, outcome, "transduce bench")))
tuned = [result for result in outcome.results.values() if result.tuning is not None]
tried = [candidate.settings for candidate in tuned[0].tuning.candidates]
assert tried == [{"precision": 30.0}, {"precision": 10.0}]  # the default first
"""


def run(tmp_path: Path, *arguments: str) -> str:
    (tmp_path / "tuned_k_means.py").write_text(FILE)
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
    assert table.count("tuned-k-means") == 2  # zero-shot and 4-shot


def test_is_checked_by_the_contract_tests(tmp_path):
    assert " passed" in run(tmp_path, "contracts")


def test_recipe_is_about_fifteen_lines_of_code():
    tree = ast.parse(FILE)
    (method,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    prose = [ast.get_docstring(node, clean=False) for node in (tree, method, method.body[-1])]
    prose_lines = sum(len(text.splitlines()) for text in prose)
    code = [line for line in FILE.splitlines() if line.strip()]
    assert len(code) - prose_lines <= 20
