"""A small suite with slow tasks, in a process of its own that a test kills."""

import time

from tests.benchmark.small_features import run_suite, small_suite
from transduce.benchmark import execute as execution
from transduce.benchmark.evaluation import evaluate_chunk

SUITE = small_suite("em-dirichlet", "hard-em-dirichlet", "bd-cspn", tasks=300)


def slow(features, chunk):
    time.sleep(0.05)
    return evaluate_chunk(features, chunk)


def run_slowly(folder, started):
    execution.evaluate_chunk = slow
    started.set()
    run_suite(SUITE, folder)
