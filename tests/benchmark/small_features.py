"""Labeled features small enough to solve in milliseconds, with classes that can be told apart."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from transduce.benchmark.episodes import FewShotProtocol, ZeroShotProtocol
from transduce.benchmark.execute import execute_suite
from transduce.benchmark.executors import make_executor
from transduce.benchmark.labeled_features import LabeledFeatures, Split
from transduce.benchmark.plan import plan_suite
from transduce.benchmark.run import Run
from transduce.benchmark.suite import Column, MethodRow, Suite, Table

CLASSES, WIDTH = 6, 16
ZERO_SHOT = ZeroShotProtocol(queries=12, fewest=2, most=4)
FOUR_SHOT = FewShotProtocol(shots=4, queries=12, classes_present=3)


def small_features(
    name: str = "small", *, images: int = 20, splits: Iterable[str] = ("train", "val", "test")
) -> LabeledFeatures:
    generator = np.random.default_rng(7)
    texts = generator.normal(size=(CLASSES, WIDTH))
    labels = np.repeat(np.arange(CLASSES), images)
    found = {}
    for split in splits:
        rows = texts[labels] + 1.5 * generator.normal(size=(len(labels), WIDTH))
        found[split] = Split.of(rows.astype(np.float32), labels, CLASSES)
    return LabeledFeatures(
        name, "tiny", tuple(f"class {k}" for k in range(CLASSES)), texts.astype(np.float32), found
    )


def small_run(**changes) -> Run:
    wanted = {
        "dataset": "small", "encoder": "tiny", "method": "em-dirichlet", "protocol": ZERO_SHOT,
        "tasks": 60, "seed": 5,
    }  # fmt: skip
    return Run(**(wanted | changes))


def small_suite(*methods: str, tasks: int = 60, datasets: Iterable[str] = ("small",)) -> Suite:
    """Zero-shot and 4-shot tables; every row in the probability space."""
    names = methods or ("zero-shot", "hard-em-dirichlet", "paddle")
    return Suite(
        name="small",
        title="Small",
        note="A note.",
        columns=tuple(Column(name, name, name, "tiny") for name in datasets),
        tables=(
            Table("zero-shot", "Zero-shot", ZERO_SHOT, x=0),
            Table("four-shot", "4-shot", FOUR_SHOT, x=4),
        ),
        rows=tuple(MethodRow(name, name) for name in names),
        tasks=tasks,
        seed=5,
    )


def load(dataset: str, encoder: str, splits: set[str]) -> LabeledFeatures:
    return small_features(dataset)


def run_suite(suite: Suite, out: Path, executor=None, load_features=load, **options):
    """Plan a suite and execute it, in this process unless told otherwise."""
    executor = executor or make_executor("serial")
    return execute_suite(plan_suite(suite), out, executor, load_features, **options)
