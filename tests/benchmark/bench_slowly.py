"""A small suite with slow tasks, in a process of its own that a test kills."""

import sys
import time
from pathlib import Path

from tests.benchmark.small_features import run_suite, small_suite
from transduce.benchmark import execute as execution
from transduce.benchmark.evaluation import evaluate_chunk


def slow(features, chunk):
    time.sleep(0.05)
    return evaluate_chunk(features, chunk)


if __name__ == "__main__":
    execution.evaluate_chunk = slow
    print("started", flush=True)
    suite = small_suite("em-dirichlet", "hard-em-dirichlet", "bd-cspn", tasks=300)
    run_suite(suite, Path(sys.argv[1]))
    print("finished", flush=True)
