"""Time per task of every method at K = 1000 and 4 shots: `python -m benchmarks.method_times`.

The size of the paper's Table 2 (ImageNet); it writes results/method_times.json and .md.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.record import Record, Row
from transduce.benchmark.synthetic.simulated import simulate
from transduce.methods import METHODS, Method
from transduce.methods.method import without_convergence_warnings
from transduce.task import Space, Task

CLASSES, SHOTS, LONG = 1000, 4, 5.0  # a run longer than this many seconds is not repeated
ALPHA_STEPS = 20  # measured of alpha-TIM's, whose time is in proportion to them
BESIDE = "em-dirichlet"
ASIDE = {"coop": "needs a text tower; its time is the tower's"}
NOTE = f"""\
One task of 75 queries of 5 classes among K = {CLASSES}, with {SHOTS} shots of every class \
(simulated embeddings of 256 dimensions, probabilities of {CLASSES}, in float32), the support's \
own solution included: the median of three runs, or one run if that takes longer than {LONG:.0f} \
s. alpha-TIM is measured over {ALPHA_STEPS} of its steps and scaled to all of them. Times: \
seconds, and as a multiple of EM-Dirichlet's. CoOp {ASIDE["coop"]}."""


@cache
def batch(n_classes: int, space: Space) -> Task:
    """A simulated task in single precision, as encoders give embeddings."""
    task = simulate(n_classes=n_classes, classes_present=5, shots=SHOTS, space=space).task
    names = ("query", "zero_shot", "support", "class_embeddings")
    return replace(task, **{name: getattr(task, name).astype(np.float32) for name in names})


def timed(method: Method, task: Task) -> float:
    """Seconds of one prediction."""
    start = perf_counter()
    with without_convergence_warnings():
        method.predict(task)
    return perf_counter() - start


def measure(name: str) -> Row:
    """Return the median time of a task of the method, in its first space."""
    method: Any = METHODS[name]()
    space, scale = method.spaces[0], 1.0
    if name == "alpha-tim":
        scale = method.max_iter / ALPHA_STEPS
        method = replace(method, max_iter=ALPHA_STEPS)
    timed(method, batch(10, space))  # compiles, or loads what was compiled
    task = batch(CLASSES, space)
    seconds = [timed(method, task)]
    while len(seconds) < 3 and seconds[0] < LONG:
        seconds.append(timed(method, task))
    return {"space": space, "seconds": float(f"{scale * np.median(seconds):.3g}")}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure again what is recorded")
    fresh = parser.parse_args(arguments).fresh
    record = Record("method_times", "python -m benchmarks.method_times", NOTE, fresh=fresh)
    for name in METHODS:
        if name not in ASIDE:
            record.add({"method": name, "classes": CLASSES, "shots": SHOTS}, partial(measure, name))
    unit = next(float(str(row["seconds"])) for row in record.rows if row["method"] == BESIDE)
    columns: dict[str, Callable[[Row], str]] = {
        "method": lambda row: str(row["method"]),
        "space": lambda row: str(row["space"]),
        "seconds": lambda row: f"{float(str(row['seconds'])):.3g}",
        f"times {BESIDE}": lambda row: f"{float(str(row['seconds'])) / unit:.2g}",
        "load": lambda row: str(row["load"]),
    }
    print(record.write_table(f"Time per task, K = {CLASSES}, {SHOTS} shots", columns))


if __name__ == "__main__":
    main()
