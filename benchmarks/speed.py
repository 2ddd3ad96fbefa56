"""Time per task against `reference`, the paper's algorithm as printed, in the same run.

`python -m benchmarks.speed [--classes 37 100 397 1000] [--fresh] [--full]`. With 1000 classes and
no support the reference would take an hour for its 20 + 10 iterations: both sides then stop after
5, unless `--full`. That favors the reference, whose iterations cost all the same, while here later
ones are nearly free. Rows that are recorded are kept.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks import reference
from benchmarks.record import Record, Row
from transduce import METHODS, Task
from transduce.benchmark.synthetic.simulated import simulate
from transduce.methods.em_dirichlet import EMDirichlet
from transduce.simplex import dirichlet

SEED = 0
REPEATS = 7
NOTE = (
    "Simulated batches of 75 images of 7 of K classes (seed 0; "
    "`transduce.benchmark.synthetic.simulated`). "
    "`reference` is Algorithm 2 as printed, in plain NumPy and SciPy (`benchmarks/reference.py`), "
    "one run; `transduce` is the default solver, the median of 7. Agreement: share of the 75 "
    "labels that are equal before matching. A prepared row compares a new query batch on a support "
    "that is solved already with the same batch solved afresh."
)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = perf_counter()
    work()
    return perf_counter() - start


def typical(work: Callable[[], object]) -> float:
    """Return the median seconds of a call, after one that compiles."""
    work()  # compiles, or warms the caches
    return median(timed(work) for _ in range(REPEATS))


def against_reference(n_classes: int, shots: int, hard: bool, iterations: int) -> Row:
    """Return times and agreement of the reference and the library on one task."""
    task = simulate(n_classes=n_classes, shots=shots, seed=SEED).task
    method = replace(em_dirichlet(hard), max_iter=iterations)
    labels = method.predict(task).labels
    ours = typical(partial(method.predict, task))
    start = perf_counter()
    expected = reference.em_dirichlet(task, hard=hard, max_iter=method.max_iter).argmax(1)
    theirs = perf_counter() - start
    return {
        "reference": theirs,
        "transduce": ours,
        "ratio": theirs / ours,
        "agreement": float(np.mean(labels == expected)),
    }


def support_and_batch(n_classes: int, shots: int) -> tuple[Task, Task, Task]:
    """A task with support, another batch of queries, and that batch with the same support."""
    first = simulate(n_classes=n_classes, shots=shots, seed=SEED).task
    batch = simulate(n_classes=n_classes, seed=SEED).task
    whole = Task(
        query=batch.query,
        zero_shot=batch.zero_shot,
        support=first.support,
        support_labels=first.support_labels,
    )
    return first, batch, whole


def prepared(n_classes: int, shots: int, hard: bool) -> Row:
    """Return times of a batch solved afresh and on a prepared support."""
    first, batch, whole = support_and_batch(n_classes, shots)
    method = em_dirichlet(hard)
    ready = method.prepare(first)
    afresh, reused = typical(partial(method.predict, whole)), typical(partial(ready.predict, batch))
    same = np.mean(method.predict(whole).labels == ready.predict(batch).labels)
    return {
        "reference": afresh,
        "transduce": reused,
        "ratio": afresh / reused,
        "agreement": float(same),
    }


def mm_against_minka(n_classes: int, shots: int, whole: bool) -> Row:
    """The paper's Table 3: its majorant against Minka's, in Algorithm 1 and in Algorithm 2."""
    task = simulate(n_classes=n_classes, shots=shots, seed=SEED).task
    if whole:
        mm, minka = (
            EMDirichlet(solver=solver, solver_tolerance=1e-13, matching="none")
            for solver in ("mm", "minka")
        )
        ours, theirs = (timed(partial(method.predict, task)) for method in (mm, minka))
        same = np.mean(mm.predict(task).labels == minka.predict(task).labels)
        return {"reference": theirs, "transduce": ours, "ratio": theirs / ours, "agreement": same}
    assert task.support is not None
    mean_log = np.log(task.support).reshape(n_classes, shots, n_classes).mean(1)
    start = np.ones_like(mean_log)
    fits = [
        partial(dirichlet.fit, mean_log, start, solver=solver, tolerance=1e-13)
        for solver in ("mm", "minka")
    ]
    ours, theirs = (timed(fit) for fit in fits)
    return {"reference": theirs, "transduce": ours, "ratio": theirs / ours}


def em_dirichlet(hard: bool) -> EMDirichlet:
    """Return EM-Dirichlet without matching, soft or hard."""
    method = METHODS["hard-em-dirichlet" if hard else "em-dirichlet"]
    assert issubclass(method, EMDirichlet)
    return method(matching="none")


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, nargs="+", default=[37, 100, 397, 1000])
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    parser.add_argument("--full", action="store_true", help="all iterations also for K = 1000")
    chosen = parser.parse_args(arguments)
    record = Record("speed", "python -m benchmarks.speed", NOTE, fresh=chosen.fresh)
    for n_classes in chosen.classes:
        for shots, hard in ((4, False), (4, True), (0, False), (0, True)):
            iterations = em_dirichlet(hard).max_iter
            if n_classes >= 1000 and not shots and not chosen.full:
                iterations = 5
            sizes = {"classes": n_classes, "shots": shots, "hard": hard, "iterations": iterations}
            jobs: list[tuple[str, Callable[[], Row]]] = [
                ("algorithm", partial(against_reference, n_classes, shots, hard, iterations))
            ]
            if shots:
                jobs.append(("prepared", partial(prepared, n_classes, shots, hard)))
                name = "minka, algorithm 2" if not hard else "minka, algorithm 1"
                jobs.append((name, partial(mm_against_minka, n_classes, shots, not hard)))
            for what, measure in jobs:
                row = record.add({"what": what, **sizes}, measure)
                print(_line(row), flush=True)
    print("\n" + record.write_table("Speed", COLUMNS))


def _line(row: Row) -> str:
    return "  ".join(show(row) for show in COLUMNS.values())


def _seconds(value: object) -> str:
    assert isinstance(value, float)
    if value >= 1:
        return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s"
    return f"{1000 * value:.3g} ms"


def _ratio(value: object) -> str:
    assert isinstance(value, float)
    return f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


AGAINST = {
    "algorithm": "reference",
    "prepared": "solved afresh",
    "minka, algorithm 1": "Minka's majorant, algorithm 1",
    "minka, algorithm 2": "Minka's majorant, algorithm 2",
}
COLUMNS: dict[str, Callable[[Row], str]] = {
    "K": lambda row: f"{row['classes']}",
    "shots": lambda row: f"{row['shots']}",
    "method": lambda row: (
        "the paper's MM" if str(row["what"]).startswith("minka")
        else ("hard" if row["hard"] else "soft") + (", prepared" * (row["what"] == "prepared"))
    ),
    "iterations": lambda row: f"{row['iterations']}",
    "against": lambda row: AGAINST[str(row["what"])],
    "its time": lambda row: _seconds(row["reference"]),
    "time": lambda row: _seconds(row["transduce"]),
    "ratio": lambda row: _ratio(row["ratio"]),
    "agreement": lambda row: f"{100 * row['agreement']:.1f} %" if "agreement" in row else "",  # type: ignore[operator]
}  # fmt: skip


if __name__ == "__main__":
    main()
