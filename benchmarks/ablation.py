"""What each part of `anchored` gives: `python -m benchmarks.ablation`.

Parts left out, ideas that were tried, and other values of every constant, on the first batches of
the cells of the suite `regimes`. The folder of the features is named by TRANSDUCE_REFERENCE.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks import ablation_ideas as ideas
from benchmarks import ablation_text_ideas as text_ideas
from benchmarks.record import RESULTS, Record, Row
from transduce.benchmark.evaluation import episode
from transduce.benchmark.run import Run
from transduce.benchmark.sources import DataFolders, load_features
from transduce.benchmark.suite_files import load_suite
from transduce.errors import InvalidSetting
from transduce.methods.anchored import Anchored
from transduce.simplex.threads import one_blas_thread, single_thread

# Regime of the suite -> batches of a cell.
BATCHES = {"b16": 3, "b64_5-25": 2, "p75_3-10": 2, "lt1k": 1, "full": 1, "f2": 1}
LARGEST = 1_100  # images; whole sets with more are left out
OTHER_BATCHES = {
    "b16": 24, "b64_1-4": 12, "b64_2-10": 12, "b64_5-25": 12, "p75_3-10": 12, "b1k_5-25": 3,
    "b1k_25-50": 3, "b1k_50-100": 3, "lt1k": 4, "full": 1, "f2": 4, "f4": 2,
}  # fmt: skip
OTHER_SEED = 7
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
class Sample:
    """Batches to measure on: how many of each regime, and the seed they are drawn with."""

    batches: Mapping[str, int]
    seed: int | None = None  # None: the suite's own
    largest: int | None = None  # images of a whole set


FIRST = Sample(BATCHES, largest=LARGEST)
OTHERS = Sample(OTHER_BATCHES, OTHER_SEED)


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

    def replaced(self) -> ideas.Change | None:
        """What is replaced for the time of a run."""
        found = getattr(ideas, self.change, None) or getattr(text_ideas, self.change, None)
        return None if self.change in ("", "averaged") else found


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
    Variant("idea", "votes by how much more alike than usual", change="votes_by_contrast"),
    Variant("idea", "images count more in classes of few", change="guard_by_other_images"),
    Variant("idea", "the text's scale calibrated to the images", change="calibrated_text"),
    Variant("idea", "the text smoothed over neighbors at first", change="neighbors_smooth_text"),
    Variant("idea", "groups renamed by the text", change="groups_renamed"),
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
REPEATED = ["images count more in classes of few", "neighbors = 5", "image_steps = 12"]


def cells(sample: Sample = FIRST) -> list[tuple[str, str, Run]]:
    """Column, regime and run of every cell."""
    suite = load_suite("regimes")
    chosen = [cell for cell in suite.cells() if cell.run and cell.run.method == "anchored"]
    return [
        (cell.column.label, cell.table.key, _drawn_with(cell.run, sample.seed))
        for cell in chosen
        if cell.run is not None and cell.table.key in sample.batches
    ]


def _drawn_with(run: Run, seed: int | None) -> Run:
    return run if seed is None else replace(run, seed=seed)


def measure_cell(variant: Variant, regime: str, run: Run, sample: Sample = FIRST) -> Row | None:
    """Accuracy of one cell and of zero-shot, and what its calibration error is made of."""
    features = load_features(run.dataset, run.encoder, {"all"}, DataFolders())
    size = len(features.split("all").labels)
    if regime == "full" and sample.largest is not None and size > sample.largest:
        return None
    right, alone, sure = [], [], []
    with single_thread(), one_blas_thread(0), ideas.changed(variant.replaced()):
        for index in range(min(sample.batches[regime], run.tasks)):
            try:
                drawn = episode(features, run, index)
            except InvalidSetting:  # the set has too few classes, as in the suite
                return None
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
    for regime in regimes_of(cells):
        those = [cell for name, cell in cells.items() if name.endswith(f"; {regime}")]
        gaps = np.sum([cell["gaps"] for cell in those], axis=0)
        errors.append(100.0 * np.abs(gaps).sum() / sum(cell["images"] for cell in those))
    return float(np.mean(errors))


def regimes_of(cells: Mapping[str, Any]) -> list[str]:
    """The regimes that were measured, in their order."""
    found = {name.split("; ")[1] for name in cells}
    return [regime for regime in OTHER_BATCHES if regime in found]


def measure(variant: Variant, sample: Sample = FIRST) -> Row:
    """All cells of a variant, as {"column, regime": values}."""
    places = cells(sample)
    found = Parallel(n_jobs=2)(
        delayed(measure_cell)(variant, regime, run, sample) for _, regime, run in places
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
    known: Any = base["cells"]
    regimes = regimes_of(known)
    heads = ["", "accuracy", "difference", *regimes, "up", "down", "below zero-shot", "calibration"]
    lines = [heads]
    for row in rows:
        found: Any = row["cells"]
        moved = differences(row, base)
        by_regime = [
            float(np.mean([v for name, v in moved.items() if name.endswith(f"; {regime}")]))
            for regime in regimes
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


def page(record: Record, repeated: Record) -> str:
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
            *_repeated(repeated),
            record.made_by(),
            "",
        ]
    )


def _repeated(record: Record) -> list[str]:
    """What gained on the first batches, on many others."""
    if not record.rows:
        return []
    rows = record.rows
    return [
        "## Again on other batches",
        f"All cells of the suite and more batches of each, drawn with the seed {OTHER_SEED}: "
        f"{', '.join(f'{count} of {name}' for name, count in OTHER_BATCHES.items())}. A "
        "difference of 0.1 on the few batches above need not be there in others.",
        table(rows, rows[0]),
        "And with each set left out:",
        left_out_table(rows[1:], rows[0]),
    ]


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    parser.add_argument(
        "--only", choices=["part", "idea", "setting", "again"], help="one of the tables"
    )
    chosen = parser.parse_args(arguments)
    record = Record("ablation", "python -m benchmarks.ablation", NOTE, fresh=chosen.fresh)
    again = Record("ablation_again", "python -m benchmarks.ablation", NOTE, fresh=chosen.fresh)
    for variant in [BASE, *PARTS, *IDEAS, *SETTINGS]:
        if chosen.only in (None, variant.table) or variant is BASE:
            record.add({"variant": variant.name}, partial(measure, variant))
        if chosen.only in (None, "again") and (variant is BASE or variant.name in REPEATED):
            again.add({"variant": variant.name}, partial(measure, variant, OTHERS))
        (RESULTS / "ablation.md").write_text(page(record, again))
    print(page(record, again))


if __name__ == "__main__":
    main()
