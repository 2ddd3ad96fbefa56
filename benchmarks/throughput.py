"""A whole table at K = 1000: zero-shot tasks, the methods of Table 1 in both spaces.

`python -m benchmarks.throughput [--tasks 1000] [--fresh]` writes results/throughput.json and .md:
the time of each row with joblib's processes, and what joblib and Ray gain over one process.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.record import Record, Row
from transduce.benchmark.evaluation import Chunk, bounds, evaluate_chunk
from transduce.benchmark.execute import execute_suite
from transduce.benchmark.executors import BenchExecutor, make_executor
from transduce.benchmark.labeled_features import LabeledFeatures, Split
from transduce.benchmark.plan import plan_suite
from transduce.benchmark.suite import Column, Suite
from transduce.benchmark.suite_files import load_suite
from transduce.benchmark.synthetic.simulated import simulate_images
from transduce.simplex.threads import available_cores

CLASSES, IMAGES, SEED = 1000, 30, 0
COMPARED = ("hard-em-dirichlet", "probability")
PART = 200  # tasks that executors are compared on
NOTE = (
    "Zero-shot tasks of 75 images of 3 to 10 of K = 1000 classes (simulated embeddings, seed 0), "
    "the rows of the paper's Table 1. `table`: all tasks of a row by joblib, one process a core. "
    "`executor`: Hard EM-Dirichlet on the tasks told, after a first call that starts the workers; "
    "each task stays in one thread; processor time is what the work took in all processes. Load is "
    "that of the machine when a row ended: other work slows everything."
)


def simulated_features(*_: object) -> LabeledFeatures:
    """Return simulated features of K = 1000 classes."""
    images, labels, texts = simulate_images(n_classes=CLASSES, per_class=IMAGES, seed=SEED)
    names = tuple(f"class {k}" for k in range(CLASSES))
    split = Split.of(images, labels, CLASSES)
    return LabeledFeatures("simulated", "none", names, texts.astype(np.float32), {"test": split})


def the_suite(tasks: int) -> Suite:
    """Return Table 1 on the simulated features."""
    table = load_suite("table-1")
    column = Column("simulated", "simulated", "simulated", "none")
    return Suite("throughput", "", "", (column,), table.tables, table.rows, tasks=tasks)


def time_row(label: str, tasks: int, features: LabeledFeatures, executor: BenchExecutor) -> Row:
    """One row of the table, from nothing to its result on disk."""
    suite = the_suite(tasks)
    (row,) = (row for row in suite.rows if row.full_label == label)
    suite = Suite("throughput", "", "", suite.columns, suite.tables, (row,), tasks=tasks)
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        outcome = execute_suite(plan_suite(suite), Path(folder), executor, lambda *_: features)
        seconds = perf_counter() - start
    (result,) = outcome.results.values()
    accuracy = round(100 * result.accuracy, 2)
    return {"seconds": round(seconds, 2), "accuracy": accuracy, "workers": executor.workers}


def time_executor(name: str, tasks: int, features: LabeledFeatures) -> Row:
    """Return the time of tasks by an executor, after a call that starts its workers."""
    suite = the_suite(tasks)
    run = next(
        cell.run
        for cell in suite.cells()
        if cell.run is not None and (cell.row.method, cell.row.space) == COMPARED
    )
    chunks = [Chunk(run, run.build(), start, stop) for start, stop in bounds(tasks)]
    executor = make_executor(name)
    list(executor.run(processor_seconds, features, chunks[:2]))
    start = perf_counter()
    used = dict(executor.run(processor_seconds, features, chunks))
    seconds = perf_counter() - start
    executor.close()
    assert len(used) == len(chunks)
    return {
        "seconds": round(seconds, 2),
        "processor": round(sum(used.values()), 2),
        "workers": executor.workers,
    }


def processor_seconds(features: LabeledFeatures, chunk: Chunk) -> float:
    """What the work itself takes, however busy the machine is with other work."""
    start = process_time()
    evaluate_chunk(features, chunk)
    return process_time() - start


COLUMNS: dict[str, Callable[[Row], str]] = {
    "what": lambda row: str(row["what"]),
    "row or executor": lambda row: str(row["name"]),
    "tasks": lambda row: f"{row['tasks']:,}",
    "processes": lambda row: str(row["workers"]),
    "time": lambda row: f"{row['seconds']} s",
    "processor time": lambda row: f"{row['processor']} s" if "processor" in row else "",
    "per task": lambda row: f"{1000 * float(str(row['seconds'])) / int(str(row['tasks'])):.1f} ms",
    "accuracy": lambda row: str(row.get("accuracy", "")),
    "load": lambda row: str(row["load"]),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000, help="a row of the table")
    parser.add_argument("--part", type=int, default=PART, help="tasks for comparing executors")
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    chosen = parser.parse_args(arguments)
    record = Record("throughput", "python -m benchmarks.throughput", NOTE, fresh=chosen.fresh)
    features = simulated_features()
    for name in ("serial", "joblib", "ray"):
        key = {"what": "executor", "name": name, "tasks": chosen.part}
        print(record.add(key, partial(time_executor, name, chosen.part, features)), flush=True)
    joblib = make_executor("joblib", workers=available_cores())
    for row in the_suite(chosen.tasks).rows:
        key = {"what": "table", "name": row.full_label, "tasks": chosen.tasks}
        measure = partial(time_row, row.full_label, chosen.tasks, features, joblib)
        print(record.add(key, measure), flush=True)
    print("\n" + record.write_table("Throughput of a table at K = 1000", COLUMNS))


if __name__ == "__main__":
    main()
