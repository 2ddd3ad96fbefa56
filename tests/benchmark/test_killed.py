"""Killed at random, ten times, and resumed: the same bytes as without, except the times."""

import multiprocessing
import random
import time

import pytest

from tests.benchmark.bench_slowly import SUITE, run_slowly
from tests.benchmark.small_features import run_suite
from tests.benchmark.test_execute import timeless

KILLS = 10


@pytest.fixture
def start(tmp_path):
    """Start the suite in a process forked from one that has imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.benchmark.bench_slowly"])

    def start():
        started = context.Event()
        process = context.Process(target=run_slowly, args=(tmp_path / "killed", started))
        process.start()
        assert started.wait(60)
        return process

    return start


def test_ten_kills_change_nothing(start, tmp_path):
    chance = random.Random(3)
    kills = 0
    while kills < KILLS:
        process = start()
        time.sleep(chance.uniform(0.0, 0.4))
        if process.is_alive():
            process.kill()
            kills += 1
        process.join()
    process = start()
    process.join()
    assert process.exitcode == 0
    run_suite(SUITE, tmp_path / "whole")
    assert timeless(tmp_path / "killed") == timeless(tmp_path / "whole")
    assert not list((tmp_path / "killed").rglob("*.tmp"))
