"""Every method at 1, 4 and 16 shots on real CLIP features: `python -m benchmarks.few_shot_table`.

Writes results/few_shot.json, one row at a time (an interrupted run goes on where it stopped), and
results/few_shot.md. Add `--fresh` to measure everything again.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.feature_sets import QUERIES, SETS, TUNING_QUERIES, FeatureSet, load
from benchmarks.record import Record, Row, machine
from transduce.methods import METHODS
from transduce.methods.method import Method

COMMAND = "python -m benchmarks.few_shot_table"
SEED, TASKS, TUNING_TASKS, SHOTS = 2024, 100, 5, (1, 4, 16)
ASIDE = {"coop": "needs the weights of a text tower, which these features come without"}
TUNED_LIKE = {"tip-adapter-f": "tip-adapter"}  # its training is too long for a search
NOTE = f"""\
Accuracy in % over {TASKS} tasks (mean and 95 % interval) and median time per task. A task holds \
{QUERIES} queries of 5 classes and the shots of all K classes. Images of each class are split once \
into support (at least 16), tuning and test; a query's 5 classes are drawn among those with at \
least 15 test and 7 tuning images (all 19 of WHU-RS19, 17 of Caltech's 62; the others still count \
as classes and have shots). Settings with a grid are tuned for each set and number of \
shots on {TUNING_TASKS} tasks of {TUNING_QUERIES} tuning images, Tip-Adapter-F with Tip-Adapter's \
values; the others are the defaults. Zero-shot uses no shots. Features are softmax(30 cos) except \
for the adapters and the linear probe, which take embeddings. CoOp {ASIDE["coop"]}."""


@cache
def feature_set(name: str) -> FeatureSet:
    return load(name, SEED)


def accuracies(
    method: Method, features: FeatureSet, pool: str, shots: int, *, tasks: int, queries: int
) -> tuple[list[float], list[float]]:
    """Accuracy and seconds of each task; the same tasks for every method."""
    right, seconds = [], []
    for index in range(tasks):
        seed = [SEED, SETS.index(features.name), shots, queries, index]
        episode = features.episode(pool, shots, queries, seed)
        task = features.task(episode, method.spaces[0], with_support=method.support != "unused")
        prediction = method.predict(task)
        right.append(float(np.mean(prediction.labels == features.labels[episode.query])))
        seconds.append(prediction.trace.seconds)
    return right, seconds


def tuned(name: str, features: FeatureSet, shots: int) -> Method:
    """The method with the settings of its grid that are best on tuning images; ties keep the
    earlier candidate, and the defaults come first.
    """
    default = METHODS[name]()
    candidates: list[Any] = [default]
    candidates += [
        replace(default, **dict(zip(default.grid, values, strict=True)))  # type: ignore[type-var]
        for values in product(*default.grid.values())
        if default.grid
    ]
    if len(candidates) == 1:
        return default
    run = partial(accuracies, features=features, pool="tuning", shots=shots)
    scores = [
        np.mean(run(candidate, tasks=TUNING_TASKS, queries=TUNING_QUERIES)[0])
        for candidate in candidates
    ]
    best: Method = candidates[int(np.argmax(scores))]
    return best


def settings_of(method: Method) -> dict[str, float]:
    return {field: float(getattr(method, field)) for field in method.grid}


def measure(name: str, set_name: str, shots: int, record: Record) -> Row:
    features = feature_set(set_name)
    method = METHODS[name]()
    if name in TUNED_LIKE:
        key = {"features": set_name, "shots": shots, "method": TUNED_LIKE[name]}
        found = next(r for r in record.rows if key.items() <= r.items())
        method = replace(method, **json.loads(str(found["settings"])))  # type: ignore[type-var]
    else:
        method = tuned(name, features, shots)
    accuracies(method, features, "test", shots, tasks=1, queries=QUERIES)  # compiles, loads
    right, seconds = accuracies(method, features, "test", shots, tasks=TASKS, queries=QUERIES)
    return {
        "accuracy": round(100 * float(np.mean(right)), 2),
        "interval": round(100 * 1.96 * float(np.std(right, ddof=1)) / TASKS**0.5, 2),
        "seconds": float(f"{np.median(seconds):.3g}"),
        "settings": json.dumps(settings_of(method)),
        "seed": SEED,
        "tasks": TASKS,
    }


def table(record: Record, set_name: str) -> str:
    """One feature set: a row for each method, a column for each number of shots."""
    head = [f"{shots}-shot" for shots in SHOTS]
    lines = [["method", *head, *(f"time, {column}" for column in head)]]
    cells = {(row["features"], row["shots"], row["method"]): row for row in record.rows}
    for name in METHODS:
        rows = [cells.get((set_name, shots, name)) for shots in SHOTS]
        right = [f"{row['accuracy']:.1f} ± {row['interval']:.1f}" if row else "-" for row in rows]
        times = [f"{1000 * float(str(row['seconds'])):.3g} ms" if row else "-" for row in rows]
        lines.append([name, *right, *times])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    shown = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    return "\n".join([shown[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *shown[1:]])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure again what is recorded")
    fresh = parser.parse_args(arguments).fresh
    record = Record("few_shot", COMMAND, NOTE, fresh=fresh)
    for set_name, shots, name in product(SETS, SHOTS, METHODS):
        if name in ASIDE:
            continue
        key = {"features": set_name, "shots": shots, "method": name}
        run: Callable[[], Row] = partial(measure, name, set_name, shots, record)
        row = record.add(key, run)
        print(f"{set_name:24}{shots:3}-shot  {name:22}{row['accuracy']:6.1f}", flush=True)
    write_page(record)


def write_page(record: Record) -> None:
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    parts = [f"# Few-shot, every method on real features\n\n{NOTE}\n"]
    missing = len(SETS) * len(SHOTS) * (len(METHODS) - len(ASIDE)) - len(record.rows)
    if missing:
        parts.append(f"{missing} cells are not measured yet: run `{COMMAND}` again.\n")
    parts += [f"## {name}\n\n{table(record, name)}\n" for name in SETS]
    loads = [float(str(row["load"])) for row in record.rows]
    parts.append(
        f"Made by `{COMMAND}`, seed {SEED}, on {facts}. Load average meanwhile: "
        f"{min(loads)} to {max(loads)}; above the number of cores, times are too long.\n"
    )
    record.path.with_suffix(".md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
