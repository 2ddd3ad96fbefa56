"""A small suite with slow tasks, in a process of its own that a test kills."""

import sys
import time
from pathlib import Path

from tests.benchmark.small_features import load, small_suite
from transduce.benchmark import execute as execution
from transduce.benchmark.evaluation import evaluate
from transduce.benchmark.executors import make_executor


def slow(features, chunk):
    time.sleep(0.05)
    return evaluate(features, chunk)


if __name__ == "__main__":
    execution.evaluate = slow
    print("started", flush=True)
    suite = small_suite("em-dirichlet", "hard-em-dirichlet", "bd-cspn", tasks=300)
    execution.execute(suite, Path(sys.argv[1]), make_executor("serial"), load)
    print("finished", flush=True)
