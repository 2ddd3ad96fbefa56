"""`transduce bench` as a person types it."""

import json
import os
import subprocess
import sys

import pytest

SUITE = """
title = "Mine"
note = "A suite of one's own."
tasks = 10
methods = "first"
tune = false
columns = [{ dataset = "drawn:5", encoder = "shapes" }]

[[tables]]
key = "z"
title = "Zero-shot"
protocol = { name = "zero-shot", queries = 20, fewest = 2, most = 4 }
"""


def bench(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "transduce", "bench", *arguments],
        capture_output=True, text=True, cwd=cwd, timeout=200,
        env={**os.environ, "COLUMNS": "80"} | {"TRANSDUCE_REFERENCE": ""},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    (folder / "mine.toml").write_text(SUITE)
    return folder


def test_a_suite_of_ones_own_from_file_to_page(folder):
    done = bench("mine.toml", "--executor", "serial", "--method", "zero-shot",
                 "--method", "hard-em-dirichlet", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "hard-em-dirichlet" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    out = folder / "out" / "bench" / "mine"
    assert {path.name for path in out.iterdir()} >= {
        "page.html", "tables.md", "tables.tex", "tables.csv", "runs",
    }  # fmt: skip
    assert len(list((out / "runs").iterdir())) == 2
    again = bench("mine.toml", "--report-only", "--json", cwd=folder)
    cells = json.loads(again.stdout)["cells"]
    assert all(0 < cell["metrics"]["mean_per_class_recall"] <= 1 for cell in cells if cell["value"])
    assert {cell["label"] for cell in cells if cell["value"]} == {
        "zero-shot, probabilities", "hard-em-dirichlet, probabilities",
    }  # fmt: skip


def test_suites_are_listed():
    done = bench("--list")
    assert done.returncode == 0
    assert "table-1" in done.stdout
    assert "smoke" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Expected the name of a suite"),
        (["smok"], "did you mean 'smoke'"),
        (["smoke", "--shard", "9/4"], "such as 3/16"),
        (["smoke", "--method", "zero-shott"], "did you mean 'zero-shot'"),
        (["real", "--method", "zero-shot"], "TRANSDUCE_REFERENCE"),
        (["table-1", "--method", "zero-shot", "--column", "dtd", "--data", "nowhere"],
         "transduce data prepare dtd"),
        (["smoke", "--address", "x:1"], "with the ray executor"),
        (["real", "--report-only"], "compute them: transduce bench real"),
    ],
)  # fmt: skip
def test_bad_input_is_told_and_exits_2(arguments, words, tmp_path):
    done = bench(*arguments, "--executor", "serial", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("page.html"))  # an empty page would help nobody


def test_starts_without_the_libraries_it_may_not_need():
    heavy = ("matplotlib", "ray", "numba", "jinja2")
    code = f"import sys, transduce.cli.bench; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
