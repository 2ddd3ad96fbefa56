"""Where `anchored` loses, and why: `python -m benchmarks.lost`.

What its wrong labels are, on the first batches of cells of the suites `regimes` and
`few-shot-regimes`. The folder of the features is named by TRANSDUCE_REFERENCE.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Int

from benchmarks.record import Record, Row
from transduce.benchmark.episodes import Episode
from transduce.benchmark.evaluation import episode
from transduce.benchmark.run import Run
from transduce.benchmark.sources import DataFolders, load_features
from transduce.benchmark.suite_files import load_suite
from transduce.errors import InvalidSetting
from transduce.methods.anchored import Anchored
from transduce.methods.neighbors import mutual_graph
from transduce.methods.text_guess import unit_embeddings
from transduce.simplex.probabilities import softmax
from transduce.simplex.threads import one_blas_thread, single_thread

# Suite -> its regimes -> batches of a cell.
CELLS = {
    "regimes": {"p75_3-10": 10, "b1k_25-50": 2, "f2": 2},
    "few-shot-regimes": {"1-some": 5},
}
FEWEST = 4  # images of a class that counts as misnamed if most of them have another name
NOTE = (
    "The first batches of cells of the suites regimes (10 of p75_3-10, 2 of b1k_25-50, 2 of f2) "
    "and few-shot-regimes (5 of 1-some), their seed. Here: classes present; named: different "
    "labels by `anchored`. Accuracies in %: zero-shot, `anchored`, `anchored` without the shots, "
    "and the text alone if it knew which classes are here. Wrong: images in % whose wrong label is "
    "a class that is absent, or present. Misnamed: classes of four and more images of which most "
    "have one other name, summed over batches; and for how many of these the text's mean score is "
    "higher for that name. Neighbors: share of the 3 nearest images (both ways) that have the same "
    "class, and its estimate without labels, by how often the text calls neighbors alike."
)

Labels = Int[np.ndarray, " image"]


def wrong_names(
    truth: Labels, labels: Labels, text: Float32[np.ndarray, "image class"]
) -> tuple[int, int]:
    """Classes of which most images have one other name; of these, whose text prefers it."""
    misnamed = preferred = 0
    for label, count in enumerate(np.bincount(truth)):
        images = truth == label
        if count < FEWEST:
            continue
        name = int(np.bincount(labels[images]).argmax())
        if name != label:
            misnamed += 1
            preferred += int(text[images, name].mean() > text[images, label].mean())
    return misnamed, preferred


def shared_classes(graph: sp.csr_array, truth: Labels, guess: np.ndarray) -> tuple[float, float]:
    """The share of neighbors of one class, and its estimate by the guesses of the text."""
    links = graph.tocoo()
    first, second = links.coords
    weight = max(float(links.data.sum()), 1e-9)
    true = float(links.data[truth[first] == truth[second]].sum()) / weight
    alike = float(((graph @ guess) * guess).sum()) / weight
    return true, alike / float((guess**2).sum(1).mean())


def examine(drawn: Episode) -> dict[str, float]:
    """What one batch's answer is made of."""
    task, truth, method = drawn.task, drawn.labels, Anchored()
    query, classes = unit_embeddings(method, task)
    text = 100.0 * query @ classes.T
    labels = method.predict(task).labels
    bare = replace(task, support=None, support_labels=None)
    alone = labels if task.support is None else method.predict(bare).labels
    here = np.bincount(truth, minlength=len(classes)) > 0
    known = np.where(here, text, -np.inf).argmax(1)
    wrong = labels != truth
    misnamed, preferred = wrong_names(truth, labels, text)
    true, estimated = shared_classes(mutual_graph(query, 3), truth, softmax(text))
    return {
        "here": float(here.sum()),
        "named": float(len(np.unique(labels))),
        "zero-shot": 100.0 * float((text.argmax(1) == truth).mean()),
        "anchored": 100.0 * float((~wrong).mean()),
        "without shots": 100.0 * float((alone == truth).mean()),
        "classes known": 100.0 * float((known == truth).mean()),
        "absent": 100.0 * float((wrong & ~here[labels]).mean()),
        "present": 100.0 * float((wrong & here[labels]).mean()),
        "misnamed": float(misnamed),
        "preferred": float(preferred),
        "neighbors": true,
        "neighbors estimated": estimated,
    }


def measure(run: Run, batches: int) -> Row:
    """Means over the batches of a cell; misnamed classes are summed."""
    splits = {run.query_split} if run.query_split == "all" else {run.query_split, run.support_split}
    features = load_features(run.dataset, run.encoder, splits, DataFolders())
    with single_thread(), one_blas_thread(0):
        found = [examine(episode(features, run, index)) for index in range(batches)]
    row: Row = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    for name in ("misnamed", "preferred"):
        row[name] = float(sum(one[name] for one in found))
    return row


def _number(name: str, form: str = ".1f") -> Callable[[Row], str]:
    return lambda row: f"{row[name]:{form}}"


COLUMNS: dict[str, Callable[[Row], str]] = {
    "set": lambda row: str(row["column"]),
    "regime": lambda row: str(row["regime"]),
    "here": _number("here"),
    "named": _number("named"),
    "zero-shot": _number("zero-shot"),
    "anchored": _number("anchored"),
    "without shots": _number("without shots"),
    "text, classes known": _number("classes known"),
    "wrong: absent": _number("absent"),
    "wrong: present": _number("present"),
    "misnamed": _number("misnamed", ".0f"),
    "by the text too": _number("preferred", ".0f"),
    "neighbors": _number("neighbors", ".2f"),
    "estimated": _number("neighbors estimated", ".2f"),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    chosen = parser.parse_args(arguments)
    record = Record("lost", "python -m benchmarks.lost", NOTE, fresh=chosen.fresh)
    for suite, regimes in CELLS.items():
        for cell in load_suite(suite).cells():
            run, regime = cell.run, cell.table.key
            if run is None or run.method != "anchored" or regime not in regimes:
                continue
            key = {"column": cell.column.label, "regime": regime}
            try:
                record.add(key, partial(measure, run, regimes[regime]))
            except (
                InvalidSetting
            ) as error:  # the set has too few classes or images, as in the suite
                print(f"{cell.column.label}, {regime}: {error}")
    print(record.write_table("Where anchored loses, and why", COLUMNS))


if __name__ == "__main__":
    main()
