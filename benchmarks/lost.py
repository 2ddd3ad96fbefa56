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
from transduce.methods.anchored.batch import ArrayRows
from transduce.methods.anchored.entries import Entries, StoredRows
from transduce.methods.anchored.resume import Progress
from transduce.methods.anchored.start import bare_batch, in_basis, prepared
from transduce.methods.anchored.steps import AnchoredState, Assignments, Moments
from transduce.methods.neighbors import mutual_graph
from transduce.methods.text_guess import unit_embeddings
from transduce.mixtures.within import class_sums
from transduce.simplex.passes import in_threads
from transduce.simplex.probabilities import softmax
from transduce.simplex.threads import one_blas_thread, single_thread
from transduce.task import Task

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
    "`anchored` with its last steps started from the true labels (and no shots), "
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


def steps_from_truth(task: Task, truth: Labels) -> Labels:
    """Where the steps go that start from the true labels, rather than from the text; no shots.

    If they stay there and the answer is elsewhere, the steps did not find what the model allows.
    """
    method = Anchored()
    _, classes = unit_embeddings(method, task)
    bare = bare_batch(method, ArrayRows.of(task.query, task.view), classes, None)
    batch = in_basis(prepared(bare, method.neighbors, in_threads))
    start = AnchoredState.first(method, batch, Moments.of(batch, in_threads), in_threads)
    state = method._solve(Progress(start, -1, None), method.image_steps)
    ones, rows = np.ones(len(truth), np.float32), np.arange(len(truth))
    z: sp.csr_array = sp.csr_array((ones, (rows, truth)), shape=(len(truth), len(classes)))
    mass = np.bincount(truth, minlength=len(classes)).astype(np.float64)
    sums = class_sums(z, batch.compared(slice(0, len(truth)))).astype(np.float64)
    known = Assignments(StoredRows((Entries.of(z),)), mass, np.minimum(mass, 1.0), sums)
    state = replace(state, assignments=known)
    for _ in range(method.image_steps):
        state = state.with_prior().rescaled().with_classes().weighted(None)
        state = state.assigned(with_sums=True)
    found: Labels = np.asarray(state.assignments.z.whole().toarray().argmax(1))
    return found


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
        "from the truth": 100.0 * float((steps_from_truth(task, truth) == truth).mean()),
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
    "from the truth": _number("from the truth"),
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
