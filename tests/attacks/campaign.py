"""`make attack`: thousands of broken inputs and a thousand kills; writes results/attacks.md.

    python -m tests.attacks.campaign              # everything that results/attacks.json has not
    python -m tests.attacks.campaign embed HTTP   # these parts alone
    python -m tests.attacks.campaign --fresh      # from the beginning

Each part is kept as one row, so that a stopped campaign goes on with the next part.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.record import Record
from tests.attacks.broken import KINDS, try_kind
from tests.attacks.killing import RUNS, kill_often
from tests.attacks.rows import ROWS
from transduce.features import layout
from transduce.features.importing import import_arrays
from transduce.features.store import FeatureStore

KILLS = {"embed": 350, "label": 200, "review": 390, "bench joblib": 45, "bench ray": 15}
INPUTS = 1300  # of each kind
COST = "reading with hashes"
IMAGES, DIMENSION = 100_000, 512
REPEATS = 5
SHOWN = 20  # of the things that went wrong, in the table


def broken(name):
    """Return the counts of broken inputs of a kind."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        taken, refused, surprises = try_kind(name, Path(folder) / "x", INPUTS)
    return {
        "tried": INPUTS,
        "taken": taken,
        "refused": refused,
        "wrong": surprises,
        "seconds": round(time.monotonic() - start, 1),
    }


def killed(name):
    """Return the counts of kills of a kind of run."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = kill_often(name, folder, KILLS[name])
    wrong = [f"{what}: {one}" for what in ("lost", "orphans", "hangs") for one in counts[what]]
    return {
        "tried": counts["kills"],
        "finished before the kill": counts["finished"],
        "sequences compared": counts["sequences"],
        "wrong": wrong,
        "seconds": round(time.monotonic() - start, 1),
    }


def cost():
    """Measure reading a store with its hashes compared, and once they are."""
    rows = np.random.default_rng(0).normal(size=(IMAGES, DIMENSION)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{number:06d}.jpg" for number in range(IMAGES)]
        import_arrays(rows, names, Path(folder) / "store")

        def read():
            start = time.perf_counter()
            for _ in FeatureStore.open(Path(folder) / "store").unit_blocks():
                pass
            return time.perf_counter() - start

        read()
        plain, compared = [], []
        for _ in range(REPEATS):
            layout._file_digest.cache_clear()
            compared.append(read())
            plain.append(read())
    return {"plain": round(min(plain), 3), "compared": round(min(compared), 3)}


def report(record):
    """Write the tables of what is recorded."""
    rows = {row["part"]: row for row in record.rows}
    lines = ["# Attacks", "", *_about(record), "", "## Broken inputs", ""]
    lines += [
        "| kind | tried | taken | refused in words | surprises | seconds |",
        "|---|--|--|--|--|--|",
    ]
    inputs = [rows[name] for name in KINDS if name in rows]
    for row in inputs:
        wrong = len(row["wrong"])
        counts = f"{row['tried']:,} | {row['taken']:,} | {row['refused']:,} | {wrong}"
        lines.append(f"| {row['part']} | {counts} | {row['seconds']} |")
    total = sum(row["tried"] for row in inputs)
    lines += [f"| **all** | **{total:,}** | | | **{sum(len(r['wrong']) for r in inputs)}** | |", ""]
    lines += ["A surprise is any exception but a refusal that begins with what was expected.", ""]
    lines += [
        "## Kills",
        "",
        "SIGKILL at a random moment, then resumed; every tenth time left to end and compared.",
    ]
    lines += [
        "",
        "| run | kills | ended before | sequences compared | lost, orphans, hangs | seconds |",
    ]
    lines += ["|---|--|--|--|--|--|"]
    kills = [rows[name] for name in RUNS if name in rows]
    for row in kills:
        counts = (
            f"{row['tried']:,} | {row['finished before the kill']:,} | {row['sequences compared']}"
        )
        lines.append(f"| {row['part']} | {counts} | {len(row['wrong'])} | {row['seconds']} |")
    total = sum(row["tried"] for row in kills)
    lines += [f"| **all** | **{total:,}** | | | **{sum(len(r['wrong']) for r in kills)}** | |", ""]
    wrong = [text for row in (*inputs, *kills) for text in row["wrong"]]
    lines += [f"- {text[:200]}" for text in wrong[:SHOWN]] + ([""] if wrong else [])
    if COST in rows:
        row = rows[COST]
        lines += ["## What the hashes cost", ""]
        lines += [
            f"Reading {IMAGES:,} x {DIMENSION} features from a warm disk: {row['plain']} s, and "
            f"{row['compared']} s the first time, when the files are compared with their hashes.",
            "",
        ]
    lines += [
        "## The 26 attacks",
        "",
        "Each was seen to succeed once; the test that holds it now:",
        "",
    ]
    lines += ["| | attack | held by |", "|--|---|---|"]
    lines += [
        f"| {n} | {row.attack} | {'<br>'.join(f'`{t}`' for t in row.tests)} |"
        for n, row in ROWS.items()
    ]
    path = record.path.with_suffix(".md")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path, wrong


def _about(record):
    head = record._head
    loads = [row["load"] for row in record.rows]
    return [
        f"`{head['command']}`; {head['note']}",
        "",
        "; ".join(f"{name} {value}" for name, value in head["machine"].items())
        + f"; load of the machine when a part ended: {min(loads)} to {max(loads)}",
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", help="embed, HTTP ...; by default all")
    parser.add_argument("--fresh", action="store_true")
    chosen = parser.parse_args()
    measures = {**dict.fromkeys(KINDS, broken), **dict.fromkeys(RUNS, killed), COST: None}
    unknown = set(chosen.parts) - set(measures)
    if unknown:
        sys.exit(f"Expected parts of {', '.join(measures)}, found {', '.join(unknown)}.")
    note = "seeds are in the code; the moments of the kills depend on the machine as well"
    record = Record("attacks", "python -m tests.attacks.campaign", note, fresh=chosen.fresh)
    for name in chosen.parts or measures:
        measure = measures[name]
        row = record.add(
            {"part": name}, cost if measure is None else lambda n=name, m=measure: m(n)
        )
        print(name, {key: value for key, value in row.items() if key != "part"}, flush=True)
    path, wrong = report(record)
    print(f"Wrote {path}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
