"""The runs of `benchmarks.scale`, each in a process of its own: prints one line of JSON.

Those with workers and drivers that are killed are in `benchmarks.scale_kills`.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.planted import BLOCK, WIDTH, Planted
from transduce.features.layout import embeddings_name
from transduce.labeling.problem import likeliest_of
from transduce.labeling.solving.rows import KEPT_BYTES, StoredBatch, StoreRows
from transduce.methods import METHODS
from transduce.methods.anchored import Anchored, cells
from transduce.methods.anchored import passes as anchored_passes
from transduce.methods.anchored import start as anchored_start
from transduce.methods.anchored.batch import ArrayRows, RowSource
from transduce.methods.anchored.passes import BEST
from transduce.methods.em_dirichlet import EMDirichlet
from transduce.methods.large_mixture import ZeroShotRows, solve_mixture
from transduce.methods.method import without_convergence_warnings
from transduce.simplex.threads import over_slices
from transduce.task import Task

PRODUCT_ROWS, BLOCK_ROWS = 20_000, 256
DIRICHLET_ITERATIONS, TEMPERATURE = 5, 30.0
LOSS_IMAGES = 4096


def stored(folder: Path, n_images: int, n_classes: int) -> tuple[StoredBatch, np.ndarray]:
    """The rows of simulated shards, made if they are not there, and the true classes."""
    planted = Planted(n_classes, n_classes)
    path = folder / f"{n_images}-{n_classes}"
    sizes = [min(BLOCK, n_images - start) for start in range(0, n_images, BLOCK)]
    truth = []
    for index, size in enumerate(sizes):
        file, labels = path / embeddings_name(index), path / f"labels-{index}.npy"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not labels.exists():
            rows, drawn = planted.block(index, size)
            np.save(file, rows.astype(np.float16))
            np.save(labels, drawn)
        truth.append(np.load(labels))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    every = StoreRows(str(path), starts, tuple(range(len(sizes))), np.arange(n_images))
    return StoredBatch(every), np.concatenate(truth)


class Watch:
    """Time, processor time and the most anonymous memory of what happens inside."""

    def __enter__(self) -> "Watch":
        self._before, self.bytes, self._done = self._held(), 0, False
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        self._clock, self._processor = perf_counter(), process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds, self.cpu = perf_counter() - self._clock, process_time() - self._processor
        self._done = True
        self._thread.join()

    def _look(self) -> None:
        while not self._done:
            self.bytes = max(self.bytes, self._held() - self._before)
            sleep(0.02)

    @staticmethod
    def _held() -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return 1024 * int(line.split()[1])
        return 0


def product(rows: np.ndarray, table: np.ndarray, n_images: int) -> tuple[float, float]:
    """Seconds and processor seconds of `n_images` rows times the table, in blocks over threads."""
    blocks = [slice(a, a + BLOCK_ROWS) for a in range(0, len(rows), BLOCK_ROWS)]
    best = []
    with threadpool_limits(1):
        for _ in range(3):
            clock, processor = perf_counter(), process_time()
            over_slices(lambda part: (rows[part] @ table.T).shape, blocks)
            best.append((perf_counter() - clock, process_time() - processor))
    scale = n_images / len(rows)
    return scale * min(b[0] for b in best), scale * min(b[1] for b in best)


def said(watch: Watch, unit: tuple[float, float], **more: object) -> dict[str, Any]:
    """A row of the table."""
    return {
        "seconds": round(watch.seconds, 2),
        "products": round(watch.seconds / unit[0], 2),
        "products_cpu": round(watch.cpu / unit[1], 2),
        "product_seconds": round(unit[0], 3),
        "megabytes": round(watch.bytes / 1e6),
        **more,
    }


def kept(rows: StoredBatch) -> RowSource:
    """The rows as `transduce label` has them: few in memory, many on disk."""
    if 4 * len(rows) * WIDTH > KEPT_BYTES:
        return rows
    return ArrayRows(rows.images(slice(0, len(rows))))


def zero_shot_accuracy(rows: StoredBatch, texts: np.ndarray, truth: np.ndarray) -> float:
    """The accuracy of names alone, on the first images."""
    first = slice(0, min(len(rows), 8192))
    return float(((rows.images(first) @ texts.T).argmax(1) == truth[first]).mean())


def run_anchored(folder: Path, images: str, classes: str) -> dict[str, Any]:
    """`anchored` with its rows on disk."""
    n_images, n_classes = int(images), int(classes)
    rows, truth = stored(folder, n_images, n_classes)
    texts = Planted(n_classes, n_classes).texts()
    sample = rows.images(slice(0, PRODUCT_ROWS if n_classes < 5000 else 4096))
    unit = product(sample, texts, n_images)
    with Watch() as watch:
        answer = Anchored().solve(kept(rows), texts)
    return said(
        watch,
        unit,
        method="anchored",
        zero_shot=zero_shot_accuracy(rows, texts, truth),
        accuracy=float((answer.classes[:, 0] == truth).mean()),
        recall=answer.trace.estimates["neighbor_recall"],
    )


def run_rivals(folder: Path, name: str, images: str, classes: str) -> dict[str, Any]:
    """A method on the same batch in memory."""
    n_images, n_classes = int(images), int(classes)
    rows, truth = stored(folder, n_images, n_classes)
    texts = Planted(n_classes, n_classes).texts()
    every = rows.images(slice(0, n_images))
    unit = product(every[:PRODUCT_ROWS], texts, n_images)
    with Watch() as watch, without_convergence_warnings():
        if name == "anchored":
            labels = Anchored().solve(ArrayRows(every), texts).classes[:, 0]
        else:
            task = Task.from_embeddings(every, texts, space="embedding")
            labels = METHODS[name]().predict(task).labels
    return said(watch, unit, accuracy=float((labels == truth).mean()))


def run_dirichlet(folder: Path, images: str, classes: str) -> dict[str, Any]:
    """EM-Dirichlet as `transduce label` solves it, beside the products that its iterations need."""
    n_images, n_classes = int(images), int(classes)
    rows, _ = stored(folder, n_images, n_classes)
    texts = Planted(n_classes, n_classes).texts()
    method = EMDirichlet(max_iter=DIRICHLET_ITERATIONS, classes_present="all")
    method.start_compiling().join()
    random = np.random.default_rng(0)
    table = random.random((n_classes, n_classes), dtype=np.float32)
    one = product(random.random((PRODUCT_ROWS, n_classes), dtype=np.float32), table, n_images)
    cosines = product(rows.images(slice(0, PRODUCT_ROWS)), texts, n_images)
    formed = ZeroShotRows(kept(rows), texts, TEMPERATURE)
    small = 4 * n_images * n_classes <= KEPT_BYTES
    with Watch() as watch, without_convergence_warnings():
        answer = solve_mixture(method, formed.kept() if small else formed)
        best = list(answer.tempered(partial(likeliest_of, count=BEST)))
    done = answer.trace.iterations
    passes = 1 if small else done + 1  # in which cosines are formed
    wall, processor = (2 * done * one[i] + passes * cosines[i] for i in (0, 1))
    words = f"{done} iterations, probabilities {'kept' if small else 'formed in every pass'}"
    if small:
        every = rows.images(slice(0, n_images))
        with without_convergence_warnings():
            task = method.predict(Task.from_embeddings(every, texts, temperature=TEMPERATURE))
        labels = np.concatenate([classes[:, 0] for classes, _ in best])
        words += f"; {int((labels != task.labels).sum())} labels differ from those of a task"
    return said(watch, (wall, processor), method="em-dirichlet", said=words)


def run_loss(folder: Path) -> dict[str, Any]:
    """Labels with sparse assignments, beside those with every entry stored."""
    rows, truth = stored(folder, LOSS_IMAGES, 1000)
    texts = Planted(1000, 1000).texts()
    images, found = ArrayRows(rows.images(slice(0, LOSS_IMAGES))), {}
    for name, negligible, most in (("stored", 1e-5, 64), ("all", 0.0, 1000)):
        anchored_passes.NEGLIGIBLE, anchored_passes.MOST_STORED = negligible, most
        found[name] = Anchored().solve(images, texts).classes[:, 0]
    different = int((found["stored"] != found["all"]).sum())
    right = {name: float((labels == truth).mean()) for name, labels in found.items()}
    words = f"{different} of {LOSS_IMAGES:,} labels differ from those with every entry of z stored"
    return {"images": LOSS_IMAGES, "classes": 1000, "accuracy": right["stored"], "said": words}


def run_real(folder: Path, name: str) -> dict[str, Any]:
    """Real features: neighbors from cells, sparse assignments and candidate classes, each alone."""
    path = Path(os.environ["TRANSDUCE_REFERENCE"]) / "data" / f"{name}.npz"
    with np.load(path) as data:
        one = "labels" in data
        keys = (
            [("image_features", "labels")]
            if one
            else [(f"{part}_features", f"{part}_labels") for part in ("test", "val")]
        )
        images = np.concatenate([data[key] for key, _ in keys])
        truth = np.concatenate([data[key] for _, key in keys])
        texts = data["text_features"].astype(np.float32)
    rows, n_images = ArrayRows.of(images), len(images)
    exact = Anchored().solve(rows, texts)
    words = [f"accuracy {float((exact.classes[:, 0] == truth).mean()):.4f}"]
    changes: dict[str, list[tuple[object, str, object]]] = {
        "neighbors from cells, an eighth compared": [
            (cells, "EXACT_UP_TO", 0),
            (cells, "CELL_ROWS", n_images // 48),
            (cells, "CANDIDATES", n_images // 8),
        ],
        "every entry stored": [
            (anchored_passes, "NEGLIGIBLE", 0.0),
            (anchored_passes, "MOST_STORED", len(texts)),
        ],
        "64 candidate classes": [(anchored_start, "MOST_DENSE", 0)],
    }
    found = {}
    for what, settings in changes.items():
        before = [(where, key, getattr(where, key)) for where, key, _ in settings]
        for where, key, value in settings:
            setattr(where, key, value)
        answer = Anchored().solve(rows, texts)
        for where, key, value in before:
            setattr(where, key, value)
        differ = int((answer.classes[:, 0] != exact.classes[:, 0]).sum())
        accuracy = float((answer.classes[:, 0] == truth).mean())
        words.append(f"{what}: {accuracy:.4f}, {differ} labels differ")
        found[what] = answer.trace.estimates["neighbor_recall"]
    recall = min(found.values())
    return {"images": n_images, "classes": len(texts), "recall": recall, "said": "; ".join(words)}


RUNS: dict[str, Callable[..., dict[str, Any]]] = {
    "anchored": run_anchored,
    "million": run_anchored,
    "classes": run_anchored,
    "rivals": run_rivals,
    "dirichlet": run_dirichlet,
    "dirichlet million": run_dirichlet,
    "loss": run_loss,
    "real": run_real,
}

if __name__ == "__main__":
    print(json.dumps(RUNS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
