"""What each part of `anchored` gives: `python -m benchmarks.ablation`.

Parts left out, ideas that were tried, and other values of every constant, on the first batches of
the cells of the suite `regimes`. The folder of the features is named by TRANSDUCE_REFERENCE.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks import ablation_ideas as ideas
from benchmarks.record import RESULTS, Record, Row
from transduce.benchmark.evaluation import episode
from transduce.benchmark.run import Run
from transduce.benchmark.sources import DataFolders, load_features
from transduce.benchmark.suite_files import load_suite
from transduce.methods.anchored import Anchored
from transduce.simplex.threads import one_blas_thread, single_thread

# Regime of the suite -> batches of a cell.
BATCHES = {"b16": 3, "b64_5-25": 2, "p75_3-10": 2, "lt1k": 1, "full": 1, "f2": 1}
LARGEST = 1_100  # images; whole sets with more are left out
BINS = 15
DRAWN = ", ".join(f"{count} of {name}" for name, count in BATCHES.items())
NOTE = (
    "Accuracy in %, mean over cells: nine sets of real CLIP features (WHU-RS19 under five "
    "encoders, Caltech-62, the same among 562 names, ImageNet-400, Cars-98) in six regimes, "
    f"the first {DRAWN} of the batches of the "
    "suite regimes (its seed, 2024; whole sets up to 1,100 images). Differences are paired, on the "
    "same batches. Up and down: cells that move by more than 0.3 points. Few batches, so that it "
    "takes minutes: a difference of less than 0.2 says nothing. Calibration: expected error in %, "
    "15 bins, images of a regime pooled over sets, mean of regimes."
)


@dataclass(frozen=True)
class Variant:
    """`anchored` with other settings, or with a part of it replaced."""

    table: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    change: str = ""  # a function of `ablation_ideas`

    def method(self) -> Anchored | ideas.Averaged:
        """The method to run inside `ideas.changed`."""
        return ideas.Averaged() if self.change == "averaged" else Anchored(**self.settings)


BASE = Variant("base", "anchored")
PARTS = [
    Variant("part", "no leave-one-out", change="nobody_left_out"),
    Variant("part", "counts always at full weight", {"bias_variance": 1e-6}),
    Variant("part", "no counts, no votes", {"bias_variance": 1e9}),
    Variant("part", "concentration from soft counts", change="soft_counts"),
    Variant("part", "no votes", {"vote_weight": 0.0}),
    Variant("part", "votes not limited", {"limit_votes": False}),
    Variant("part", "no image evidence", {"dimensions": 0.0, "full_dimensions": 0.0}),
    Variant("part", "no guard: 16 dimensions always", change="unguarded"),
    Variant("part", "guard by agreement alone", {"full_dimensions": 0.0}),
    Variant("part", "no scale of each feature", {"variance_prior": 1e12}),
    Variant("part", "no whitening", {"correlation_prior": float("inf")}),
    Variant("part", "names foretell nothing", {"names_foretell_means": False}),
    Variant("part", "probabilities not tempered", change="not_tempered"),
]
IDEAS = [
    Variant("idea", "agreement measured in every step", change="agreement_in_every_step"),
    Variant("idea", "image evidence calibrated to its agreement", change="calibrated_images"),
    Variant("idea", "votes by their purity", change="votes_by_purity"),
    Variant("idea", "votes by shared neighbors", change="shared_neighbors"),
    Variant("idea", "votes limited by the size of an image's class", change="votes_by_own_class"),
    Variant("idea", "the text's bias between classes", change="text_bias"),
    Variant("idea", "mean of three settings", change="averaged"),
    Variant("idea", "which classes are here apart from how many of each", change="presence_apart"),
    Variant("idea", "counts up to ten images", change="saturating_counts"),
    Variant("idea", "votes where all classes are present too", change="votes_of_full_sets"),
    Variant(
        "idea",
        "votes by how often neighbors have the text's same answer",
        change="votes_by_text_nearby",
    ),
    Variant("idea", "the same, vote_weight = 7", {"vote_weight": 7.0}, "votes_by_text_nearby"),
]
GRID: dict[str, tuple[float, ...]] = {
    "text_scale": (70.0, 130.0),
    "bias_variance": (1.0, 9.0),
    "neighbors": (2, 5),
    "vote_weight": (2.5, 10.0),
    "dimensions": (12.0, 20.0),
    "full_dimensions": (7.0, 14.0),
    "variance_prior": (5.0, 80.0),
    "correlation_prior": (2.5, 10.0),
    "text_steps": (2, 10),
    "image_steps": (4, 12),
}
SETTINGS = [
    Variant("setting", f"{name} = {value:g}", {name: value})
    for name, values in GRID.items()
    for value in values
]


def cells() -> list[tuple[str, str, Run]]:
    """Column, regime and run of every cell."""
    suite = load_suite("regimes")
    chosen = [cell for cell in suite.cells() if cell.run and cell.run.method == "anchored"]
    return [
        (cell.column.label, cell.table.key, cell.run)
        for cell in chosen
        if cell.run is not None and cell.table.key in BATCHES
    ]


def measure_cell(variant: Variant, regime: str, run: Run) -> Row | None:
    """Accuracy of one cell and of zero-shot, and what its calibration error is made of."""
    features = load_features(run.dataset, run.encoder, {"all"}, DataFolders())
    if regime == "full" and len(features.split("all").labels) > LARGEST:
        return None
    right, alone, sure = [], [], []
    change = getattr(ideas, variant.change, None) if variant.change != "averaged" else None
    with single_thread(), one_blas_thread(0), ideas.changed(change):
        for index in range(min(BATCHES[regime], run.tasks)):
            drawn = episode(features, run, index)
            answer = variant.method().predict(drawn.task)
            right.append(answer.labels == drawn.labels)
            alone.append(drawn.task.zero_shot.argmax(1) == drawn.labels)
            sure.append(answer.probabilities.max(1))
    return {
        "accuracy": 100.0 * float(np.mean([batch.mean() for batch in right])),
        "zero-shot": 100.0 * float(np.mean([batch.mean() for batch in alone])),
        "images": sum(map(len, right)),
        "gaps": confidence_gaps(np.concatenate(right), np.concatenate(sure)),
    }


def confidence_gaps(right: np.ndarray, sure: np.ndarray) -> list[float]:
    """Right labels less their confidence, summed over the images of each of 15 bins."""
    bins = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    sums = np.bincount(bins, right.astype(np.float64) - sure, minlength=BINS)
    return [round(float(gap), 3) for gap in sums]


def calibration_error(cells: Mapping[str, Any]) -> float:
    """Expected calibration error in %: the images of a regime pooled over sets; mean of regimes.

    Single cells have too few images here.
    """
    errors = []
    for regime in BATCHES:
        those = [cell for name, cell in cells.items() if name.endswith(f"; {regime}")]
        gaps = np.sum([cell["gaps"] for cell in those], axis=0)
        errors.append(100.0 * np.abs(gaps).sum() / sum(cell["images"] for cell in those))
    return float(np.mean(errors))


def measure(variant: Variant) -> Row:
    """All cells of a variant, as {"column, regime": values}."""
    places = cells()
    found = Parallel(n_jobs=2)(
        delayed(measure_cell)(variant, regime, run) for _, regime, run in places
    )
    pairs = zip(places, found, strict=True)
    return {"cells": {f"{column}; {regime}": row for (column, regime, _), row in pairs if row}}


def differences(row: Row, base: Row, of: str = "accuracy") -> dict[str, float]:
    """Points against `anchored`, by cell."""
    mine: Any = row["cells"]
    other: Any = base["cells"]
    return {name: mine[name][of] - other[name][of] for name in other}


def table(rows: Sequence[Row], base: Row) -> str:
    """The lines of variants: means, differences by regime, and cells that moved."""
    heads = ["", "accuracy", "difference", *BATCHES, "up", "down", "below zero-shot", "calibration"]
    lines = [heads]
    for row in rows:
        found: Any = row["cells"]
        moved = differences(row, base)
        by_regime = [
            float(np.mean([v for name, v in moved.items() if name.endswith(f"; {regime}")]))
            for regime in BATCHES
        ]
        values = np.array(list(moved.values()))
        below = sum(cell["accuracy"] < cell["zero-shot"] - 0.5 for cell in found.values())
        lines.append(
            [
                str(row["variant"]),
                f"{np.mean([cell['accuracy'] for cell in found.values()]):.2f}",
                f"{values.mean():+.2f}",
                *(f"{value:+.1f}" for value in by_regime),
                str(int((values > 0.3).sum())),
                str(int((values < -0.3).sum())),
                str(below),
                f"{calibration_error(found):.1f}",
            ]
        )
    return markdown(lines)


def left_out_table(rows: Sequence[Row], base: Row) -> str:
    """For every constant: the gain of each other value, with each set left out."""
    names: Any = base["cells"]
    sets = list(dict.fromkeys(name.split("; ")[0] for name in names))
    lines = [["setting", "all sets", *(f"without {name}" for name in sets)]]
    for row in rows:
        moved = differences(row, base)
        means = [float(np.mean(list(moved.values())))]
        for left in sets:
            kept = [value for name, value in moved.items() if not name.startswith(f"{left};")]
            means.append(float(np.mean(kept)))
        lines.append([str(row["variant"]), *(f"{value:+.2f}" for value in means)])
    return markdown(lines)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a Markdown table; the first are the heads."""
    body = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([body[0], "|" + "---|" * len(lines[0]), *body[1:]])


def page(record: Record) -> str:
    """Everything as one page."""
    rows = {str(row["variant"]): row for row in record.rows}
    base = rows[BASE.name]

    def those(variants: Sequence[Variant]) -> list[Row]:
        return [rows[variant.name] for variant in variants if variant.name in rows]

    settings = []
    if those(SETTINGS):
        settings = [
            "## Other values of every constant",
            table([base, *those(SETTINGS)], base),
            "## The same, each set left out",
            "Difference to the chosen value in points, mean over the cells of the other sets: a "
            "constant would move where a value gains in every column.",
            left_out_table(those(SETTINGS), base),
        ]
    return "\n\n".join(
        [
            "# Ablation of anchored",
            NOTE,
            "## Parts",
            table([base, *those(PARTS)], base),
            "## Ideas that were tried",
            table([base, *those(IDEAS)], base),
            *settings,
            record.made_by(),
            "",
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    parser.add_argument("--only", choices=["part", "idea", "setting"], help="one of the tables")
    chosen = parser.parse_args(arguments)
    record = Record("ablation", "python -m benchmarks.ablation", NOTE, fresh=chosen.fresh)
    for variant in [BASE, *PARTS, *IDEAS, *SETTINGS]:
        if chosen.only in (None, variant.table) or variant is BASE:
            record.add({"variant": variant.name}, partial(measure, variant))
            (RESULTS / "ablation.md").write_text(page(record))
    print(page(record))


if __name__ == "__main__":
    main()
