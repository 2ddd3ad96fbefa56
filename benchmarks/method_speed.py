"""Each slow method before and after its mending, in one run: `python -m benchmarks.method_speed`.

`before` is the revision below, checked out to a temporary folder and run by the same interpreter;
both sides take turns on the same tasks. Writes results/method_speed.json and .md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.method_times import batch, timed
from benchmarks.record import Record, Row
from transduce.benchmark.synthetic.simulated import simulate
from transduce.methods import METHODS
from transduce.methods.method import without_convergence_warnings
from transduce.task import Task

BEFORE = "3246a9c"
CLASSES, TURNS, ALPHA_STEPS = 1000, 3, 20
ROOT = Path(__file__).parent.parent
KINDS = {
    "em-dirichlet": "4 shots, probabilities, on a prepared support",
    "soft-k-means": "no shots, probabilities",
    "alpha-tim": "4 shots, probabilities",
    "linear-probe": "4 shots, embeddings",
    "tip-adapter-f": "4 shots, embeddings",
}
NOTE = f"""\
One task of 75 queries of 5 classes among K = {CLASSES} (simulated embeddings of 256 dimensions, \
float32, seed 0): the median seconds of {TURNS} turns that both sides take in alternation. \
`before` is revision {BEFORE}, run by the same interpreter from a temporary folder. alpha-TIM is \
measured over {ALPHA_STEPS} of its 1000 steps and scaled to all of them. Same labels: share of \
the 75 queries (alpha-TIM: after {ALPHA_STEPS} steps; of soft k-means on probabilities, whose \
centers collapse onto each other, rounding decides some). Ratios hold within a row; load is that \
of the machine, which other work may share."""


def child(name: str) -> None:
    """Print the seconds and the labels of one method, with the library that is on the path."""
    method: Any = METHODS[name]()
    if name == "alpha-tim":
        method = replace(method, max_iter=ALPHA_STEPS)
    space = method.spaces[0]
    shots = name != "soft-k-means"

    def task_of(n_classes: int) -> Task:
        if shots:
            return batch(n_classes, space)
        task = simulate(n_classes=n_classes, classes_present=5, space=space).task
        names = ("query", "zero_shot", "class_embeddings")
        return replace(task, **{each: getattr(task, each).astype(np.float32) for each in names})

    solver: Any = method
    if name == "em-dirichlet":
        solver = method.prepare(task_of(CLASSES))
        solver.predict(task_of(CLASSES))  # compiles, or loads what was compiled
    else:
        timed(method, task_of(10))
    seconds = timed(solver, task_of(CLASSES))
    with without_convergence_warnings():
        labels = solver.predict(task_of(CLASSES)).labels
    print(json.dumps({"seconds": seconds, "labels": labels.tolist()}))


def run_child(name: str, source: Path) -> dict[str, Any]:
    """One turn of one side."""
    path = os.pathsep.join([str(source / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.method_speed", "--child", name],
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measure(name: str, before: Path) -> Row:
    """Both sides in turns."""
    sides: dict[str, list[dict[str, Any]]] = {"before": [], "after": []}
    for _ in range(TURNS):
        sides["before"].append(run_child(name, before))
        sides["after"].append(run_child(name, ROOT))
    scale = 1000 / ALPHA_STEPS if name == "alpha-tim" else 1.0
    row: Row = {
        side: scale * float(np.median([turn["seconds"] for turn in turns]))
        for side, turns in sides.items()
    }
    first, second = (np.array(sides[side][0]["labels"]) for side in ("before", "after"))
    return {**row, "same": float((first == second).mean())}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure again what is recorded")
    parser.add_argument("--child", choices=KINDS, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child:
        child(chosen.child)
        return
    name = "method_speed"
    record = Record(name, f"python -m benchmarks.{name}", NOTE, fresh=chosen.fresh)
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "-q", str(before), BEFORE], check=True)
        try:
            for method, kind in KINDS.items():
                key = {"method": method, "task": kind}
                print(record.add(key, partial(measure, method, before)), flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)
    columns: dict[str, Callable[[Row], str]] = {
        "method": lambda row: str(row["method"]),
        "task": lambda row: str(row["task"]),
        "before": lambda row: f"{float(str(row['before'])):.3g} s",
        "after": lambda row: f"{float(str(row['after'])):.3g} s",
        "ratio": lambda row: f"{float(str(row['before'])) / float(str(row['after'])):.2g}x",
        "same labels": lambda row: f"{float(str(row['same'])):.1%}",
        "load": lambda row: str(row["load"]),
    }
    print(record.write_table(f"Methods before and after, K = {CLASSES}", columns))


if __name__ == "__main__":
    main()
