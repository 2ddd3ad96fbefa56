"""Time and peak memory of `anchored` beside StatA and TransCLIP: `python -m benchmarks.anchored`.

Simulated embeddings of 512 numbers, K = 1000, every class as likely as any other. Each method and
size runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import cProfile
import json
import pstats
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from benchmarks.record import Record, Row
from transduce.methods import METHODS
from transduce.methods.method import without_convergence_warnings
from transduce.task import Task

CLASSES, WIDTH = 1000, 512
SIZES = (75, 1_000, 7_000)
COMPARED = ("zero-shot", "anchored", "stata", "transclip")
REPEATS = {75: 9, 1_000: 3, 7_000: 1}  # the median of these, and one before that does not count
PARTS = {  # function of `anchored` -> what it does
    "bare_batch": "unit vectors of the texts, directions of the names",
    "prepared": "middle and neighbors of the images",
    "in_basis": "a basis of the images, and their text scores",
    "with_prior": "how many classes are present, from counts (13 times)",
    "rescaled": "scale of the features, and whitening (3 times)",
    "with_classes": "variance within classes, means foretold from names (8 times)",
    "with_agreement": "agreement of text and images",
    "assign_chunk": "scores and assignments (13 times)",
    "answer_chunk": "scores and best classes at the end",
}
NOTE = (
    "Simulated embeddings (512 numbers, K = 1000, seed 0), float32. Median of 9, 3 and 1 runs of "
    "75, 1,000 and 7,000 images, after one that does not count. Peak memory is beyond the same "
    "process before `predict`, which holds the task. The ratio is the time over that of StatA in "
    "the same run of the benchmark."
)


def simulated_task(n_queries: int) -> Task:
    """A task like CLIP's: all vectors lie close together."""
    random = np.random.default_rng(0)
    common = random.normal(size=WIDTH) / WIDTH**0.5
    own = random.normal(size=(CLASSES, WIDTH)) / WIDTH**0.5
    noise = random.normal(size=(n_queries, WIDTH)) / WIDTH**0.5
    images = 4 * common + own[random.integers(0, CLASSES, n_queries)] + 1.5 * noise
    return Task.from_embeddings(
        images.astype(np.float32), (4 * common + own).astype(np.float32), space="embedding"
    )


def run_one(name: str, n_queries: int) -> None:
    """In a process of its own: solve a task some times; print the median time and the peak."""
    task, method = simulated_task(n_queries), METHODS[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = []
    for _ in range(REPEATS[n_queries] + 1):
        began = perf_counter()
        with without_convergence_warnings():
            method.predict(task)
        seconds.append(perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": float(np.median(seconds[1:])), "bytes": peak - before}))


def profile_one(n_queries: int) -> None:
    """In a process of its own: print the share of the time that each part of `anchored` takes."""
    task, method = simulated_task(n_queries), METHODS["anchored"]()
    method.predict(task)
    profile = cProfile.Profile()
    for _ in range(REPEATS[n_queries]):
        profile.runcall(method.predict, task)
    spent: dict[str, float] = dict.fromkeys(["predict", *PARTS], 0.0)
    found = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for (path, _, function), (_, _, _, cumulative, _) in found.items():
        if function in spent and "anchored" in path:
            spent[function] += cumulative
    whole = spent.pop("predict")
    print(json.dumps({name: seconds / whole for name, seconds in spent.items()}))


def measure(name: str, n_queries: int) -> Row:
    """Return time and memory of a method on a batch."""
    command = [sys.executable, "-m", "benchmarks.anchored", "--one", name, str(n_queries)]
    return _in_process(command)


def profiled(n_queries: int) -> Row:
    """Return the share of the time of each part, in the order of `PARTS`."""
    command = [sys.executable, "-m", "benchmarks.anchored", "--one", "parts", str(n_queries)]
    return {"parts": _in_process(command)}


def _in_process(command: list[str]) -> Row:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    chosen = parser.parse_args(arguments)
    if chosen.one:
        name, size = chosen.one[0], int(chosen.one[1])
        profile_one(size) if name == "parts" else run_one(name, size)
        return
    record = Record("anchored", "python -m benchmarks.anchored", NOTE, fresh=chosen.fresh)
    for size in SIZES:
        for name in COMPARED:
            record.add({"images": size, "method": name}, partial(measure, name, size))
    stata = {row["images"]: row["seconds"] for row in record.rows if row.get("method") == "stata"}
    columns: dict[str, Callable[[Row], str]] = {
        "images": lambda row: f"{row['images']:,}",
        "method": lambda row: str(row["method"]),
        "time": lambda row: f"{1000 * row['seconds']:,.1f} ms",  # type: ignore[operator]
        "over StatA": lambda row: f"{row['seconds'] / stata[row['images']]:.2f}",  # type: ignore[operator]
        "peak memory": lambda row: f"{row['bytes'] / 1e6:,.0f} MB",  # type: ignore[operator]
    }
    timed = [row for row in record.rows if "seconds" in row]
    print(record.write_table("anchored beside its rivals", columns, timed))
    parts = record.add({"images": SIZES[0], "profile": "anchored"}, partial(profiled, SIZES[0]))
    section = _section(parts["parts"])  # type: ignore[arg-type]
    page = record.path.with_suffix(".md")
    page.write_text(page.read_text() + section)
    print(section)


def _section(parts: dict[str, float]) -> str:
    """Where the time of the smallest batch goes, as a section of the page."""
    lines = [f"| {PARTS[name]} | {share:.0%} |" for name, share in parts.items()]
    rest = f"| all else | {1 - sum(parts.values()):.0%} |"
    head = f"\n## Where the time of {SIZES[0]} images goes\n\nShares under Python's profiler.\n"
    return "\n".join([head, "| part | share |", "|---|---|", *lines, rest, ""])


if __name__ == "__main__":
    main()
