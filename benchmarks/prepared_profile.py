"""Where the time of a query batch on a prepared support goes, beside the same batch solved afresh.

`python -m benchmarks.prepared_profile [--fresh]` writes results/prepared_profile.json and .md.
"""

import argparse
import cProfile
import pstats
from collections.abc import Callable
from functools import partial
from statistics import median

from benchmarks.record import Record, Row
from benchmarks.speed import REPEATS, SEED, em_dirichlet, support_and_batch

CLASSES, SHOTS = 1000, 4
NOTE = (
    f"EM-Dirichlet on a simulated batch of 75 images, K = {CLASSES}, {SHOTS} shots (seed {SEED}), "
    "afresh and on a support that was solved before: milliseconds, the median of "
    f"{REPEATS} runs under cProfile. A batch starts from its zero-shot probabilities, which give "
    "every class a share of every image, so that its first M-step fits all K classes whatever the "
    "support is. That fit (Newton's method on K rows of K numbers) takes more than a tenth of the "
    "whole by itself: preparing saves the support's own sums and fit, and no more."
)

# By file and function of the engine, as they call each other: "a > b" is a part of "a".
AFRESH = {
    "solved afresh": ("methods/mixture.py", "predict"),
    "solved afresh > sums and fit of the support": ("mixtures/components.py", "solve"),
}
PREPARED = {
    "prepared": ("methods/mixture.py", "_predict"),
    "prepared > sums of the batch, first": ("mixtures/em.py", "start"),
    "prepared > M-steps": ("mixtures/components.py", "maximize"),
    "prepared > M-steps > Newton's method": ("simplex/dirichlet.py", "fit"),
    "prepared > M-steps > normalizers": ("simplex/dirichlet.py", "log_normalizer"),
    "prepared > M-steps > classes left to their support": (
        "mixtures/components.py",
        "_reset_to_support",
    ),
    "prepared > log densities": ("mixtures/scores.py", "scores_of"),
    "prepared > assignments": ("mixtures/assignment.py", "assign"),
}


def profiled(work: Callable[[], object], stages: dict[str, tuple[str, str]]) -> dict[str, float]:
    """Seconds in each stage, once."""
    profile = cProfile.Profile()
    profile.runcall(work)
    calls = pstats.Stats(profile).stats  # type: ignore[attr-defined] # the stubs leave it out
    return {
        stage: next(
            times[3]
            for (path, _, name), times in calls.items()
            if path.endswith(f"transduce/{file}") and name == function
        )
        for stage, (file, function) in stages.items()
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure again")
    chosen = parser.parse_args(arguments)
    name = "prepared_profile"
    record = Record(name, f"python -m benchmarks.{name}", NOTE, fresh=chosen.fresh)
    method = em_dirichlet(hard=False)
    first, batch, whole = support_and_batch(CLASSES, SHOTS)
    ready = method.prepare(first)
    ways = [(partial(method.predict, whole), AFRESH), (partial(ready.predict, batch), PREPARED)]
    for work, stages in ways:
        work()  # compiles
        runs = [profiled(work, stages) for _ in range(REPEATS)]
        for stage in stages:
            record.add({"stage": stage}, partial(_median, runs, stage))
    total = record.rows[0]["seconds"]
    assert isinstance(total, float)
    columns: dict[str, Callable[[Row], str]] = {
        "stage": lambda row: str(row["stage"]),
        "time": lambda row: f"{1000 * float(str(row['seconds'])):.1f} ms",
        "share of solving afresh": lambda row: f"{100 * float(str(row['seconds'])) / total:.0f} %",
    }
    print("\n" + record.write_table("A batch on a prepared support", columns))


def _median(runs: list[dict[str, float]], stage: str) -> Row:
    return {"seconds": median(run[stage] for run in runs)}


if __name__ == "__main__":
    main()
