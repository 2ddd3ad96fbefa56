"""Time and peak memory as the batch grows: K = 1000, soft, 5 iterations.

`python -m benchmarks.growth [--fresh]`. Each size runs in a process of its own, so that its peak
memory is its own; what a process needs for one image is measured in the same way and subtracted.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from benchmarks.record import RESULTS, Record, Row
from transduce.methods.em_dirichlet import EMDirichlet
from transduce.methods.method import without_convergence_warnings
from transduce.task import Task

CLASSES = 1000
SIZES = (75, 1_000, 10_000, 50_000)
NOTE = (
    "EM-Dirichlet, K = 1000, 5 iterations, all classes present, float32 probabilities (drawn, "
    "seed 0). Peak memory is what the process held at most beyond the same process with one image; "
    "arrays: that peak in units of one N x K float32 array, the batch itself being the first. "
    "An image costs most where there is about one a class: the likelihood of a class with one "
    "image has no maximum, and takes all the solver's steps. Beyond that, time is linear."
)


def run_one(n_queries: int) -> None:
    """In a process of its own: solve a batch, print its time and the peak memory."""
    random = np.random.default_rng(0)
    query = np.empty((n_queries, CLASSES), dtype=np.float32)
    for start in range(0, n_queries, 1000):
        part = query[start : start + 1000]
        part[:] = random.standard_exponential(part.shape, dtype=np.float32) ** 4
        part /= part.sum(1, keepdims=True)
    task = Task(query=query, zero_shot=query)
    method = EMDirichlet(max_iter=5, classes_present="all", matching="none")
    repeats = 2 if n_queries < 1000 else 1  # the first run of a process loads compiled kernels
    for _ in range(repeats):
        began = perf_counter()
        with without_convergence_warnings():
            trace = method.predict(task).trace
        seconds = perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "iterations": trace.iterations, "peak": peak}))


def measure(n_queries: int, floor: int) -> Row:
    """Return time and memory of a batch, `floor` bytes being those of one image."""
    command = [sys.executable, "-m", "benchmarks.growth", "--one", str(n_queries)]
    out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    held = max(0, out["peak"] - floor)
    return {
        "seconds": out["seconds"],
        "iterations": out["iterations"],
        "bytes": held,
        "arrays": held / (4 * n_queries * CLASSES),
        "microseconds per image": 1e6 * out["seconds"] / n_queries,
    }


def plot(rows: list[Row]) -> None:
    """Write the figure of time and memory against the batch."""
    from matplotlib.figure import Figure

    sizes = [row["images"] for row in rows]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.loglog(sizes, [row["seconds"] for row in rows], "o-")
    left.set(xlabel="images", ylabel="seconds", title="time, 5 iterations")
    megabytes = [row["bytes"] / 1e6 for row in rows]  # type: ignore[operator]
    right.loglog(sizes, megabytes, "o-", label="peak memory")
    two = [2 * 4 * size * CLASSES / 1e6 for size in sizes]  # type: ignore[operator]
    right.loglog(sizes, two, "--", label="two N x K float32 arrays")
    right.set(xlabel="images", ylabel="MB", title="memory")
    right.legend(frameon=False)
    figure.savefig(RESULTS / "growth.svg", metadata={"Date": None})


COLUMNS: dict[str, Callable[[Row], str]] = {
    "images": lambda row: f"{row['images']:,}",
    "time": lambda row: f"{row['seconds']:.2f} s",
    "per image": lambda row: f"{row['microseconds per image']:.0f} us",
    "peak memory": lambda row: f"{row['bytes'] / 1e6:.0f} MB",  # type: ignore[operator]
    "arrays": lambda row: f"{row['arrays']:.2f}",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    chosen = parser.parse_args(arguments)
    if chosen.one:
        run_one(chosen.one)
        return
    record = Record("growth", "python -m benchmarks.growth", NOTE, fresh=chosen.fresh)
    floor = int(str(measure(1, 0)["bytes"]))
    for size in SIZES:
        record.add({"images": size}, partial(measure, size, floor))
    plot(record.rows)
    print(record.write_table("Growth with the batch", COLUMNS))


if __name__ == "__main__":
    main()
