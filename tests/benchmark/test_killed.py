"""Killed at random, ten times, and resumed: the same bytes as without, except the times."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmark.bench_slowly import small_suite
from tests.benchmark.small_features import run_suite
from tests.benchmark.test_execute import timeless

KILLS = 10


def start(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.benchmark.bench_slowly", str(folder)],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "src:."},
    )  # fmt: skip


def test_ten_kills_change_nothing(tmp_path):
    chance = random.Random(3)
    kills = 0
    while kills < KILLS:
        process = start(tmp_path / "killed")
        assert process.stdout.readline() == "started\n"
        time.sleep(chance.uniform(0.0, 0.4))
        if process.poll() is None:
            process.kill()
            kills += 1
        process.communicate()
    process = start(tmp_path / "killed")
    assert "finished" in process.communicate()[0]
    suite = small_suite("em-dirichlet", "hard-em-dirichlet", "bd-cspn", tasks=300)
    run_suite(suite, tmp_path / "whole")
    assert timeless(tmp_path / "killed") == timeless(tmp_path / "whole")
    assert not list((tmp_path / "killed").rglob("*.tmp"))
