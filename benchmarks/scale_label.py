"""`transduce label --features STORE` as it is typed, part by part: the run `label` of `scale`.

`python -m benchmarks.scale_label label FOLDER IMAGES CLASSES` makes a store of simulated embeddings
with a sentence for each class, a name, a hash and the path of one picture for each image, labels it
by the command line in this process, and prints one line of JSON: the seconds of each part, and the
most anonymous memory that was held in it.
"""

import hashlib
import io
import json
import os
import shutil
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.planted import BLOCK, WIDTH, Planted
from transduce.encoders.encoder import Identity
from transduce.encoders.precomputed import TEXTS, write_texts
from transduce.encoders.prompts import DEFAULT_TEMPLATE, sentences
from transduce.features.layout import META, Meta, Settings, Shard
from transduce.features.writing import Row, finish, seal, write_shard

REST = "the rest"


def held() -> int:
    """The anonymous memory of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return 1024 * int(line.split()[1])
    return 0


class Parts:
    """Seconds and the most memory of each part; what a part calls that is a part counts there."""

    def __init__(self) -> None:
        self.seconds, self.most = defaultdict[str, float](float), defaultdict[str, int](int)
        self._inside, self._since = [REST], perf_counter()

    def of(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a part."""

        @wraps(function)
        def timed(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            self._turn(name)
            try:
                return function(*given, **named)
            finally:
                self._turn(None)

        return timed

    def _turn(self, name: str | None) -> None:
        now = perf_counter()
        self.seconds[self._inside[-1]] += now - self._since
        self._since = now
        if name is None:
            self._inside.pop()
        else:
            self._inside.append(name)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the memory while the block runs."""
        done, before = threading.Event(), held()

        def look() -> None:
            while not done.is_set():
                name = self._inside[-1]
                self.most[name] = max(self.most[name], held() - before)
                sleep(0.02)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._turn(REST)
            done.set()
            thread.join()


def write_store(folder: Path, n_images: int, n_classes: int) -> Path:
    """Make the store, if it is not there; the names of the classes are in names.txt beside it."""
    store = folder / f"store-{n_images}-{n_classes}"
    names = [f"kind {number:05d}" for number in range(n_classes)]
    (folder / f"names-{n_classes}.txt").write_text("\n".join(names) + "\n")
    if (store / META).exists():
        return store
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    picture = folder / "picture.jpg"
    Image.new("RGB", (64, 64), "gray").save(picture)
    planted, shards = Planted(n_classes, n_classes), list[Shard]()
    for start in range(0, n_images, BLOCK):
        rows, _ = planted.block(len(shards), min(BLOCK, n_images - start))
        listed = [
            Row(f"part-{n // 1000:04d}/image-{n:07d}.jpg", str(picture), _hash(n), 64, 64)
            for n in range(start, start + len(rows))
        ]
        shards.append(write_shard(store, len(shards), rows.astype(np.float16), listed))
    meta = Meta(Identity.declared("simulated", WIDTH), Settings(0, "unknown"))
    meta = finish(store, meta, shards, [])
    write_texts(store / TEXTS, sentences(names, DEFAULT_TEMPLATE), planted.texts())
    seal(store, meta)
    return store


def _hash(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def run_label(folder: Path, images: str, classes: str) -> dict[str, Any]:
    """Label the store, and say what each part took."""
    from transduce.cli.main import app
    from transduce.labeling import files, pipeline
    from transduce.labeling.report import page
    from transduce.labeling.run_directory import RunDirectory
    from transduce.labeling.solving import solve

    n_images, n_classes = int(images), int(classes)
    store, out = write_store(folder, n_images, n_classes), folder / f"runs-{images}-{classes}"
    shutil.rmtree(out, ignore_errors=True)
    parts = Parts()
    for name, where, function in (
        ("solve", pipeline, "solve"),
        ("doubt", solve, "doubts"),
        ("table", pipeline, "label_table"),
        ("summary", pipeline, "summarize"),
        ("labels.csv", files, "write_labels_csv"),
        ("labels.parquet", files, "write_labels_parquet"),
        ("report", page, "write_report"),
        ("reading it back", RunDirectory, "load"),
    ):
        setattr(where, function, parts.of(name, getattr(where, function)))
    words = ["label", "--features", str(store), "--out", str(out)]
    words += ["--classes-file", str(folder / f"names-{n_classes}.txt")]
    clock = perf_counter()
    with parts.watched(), redirect_stdout(io.StringIO()):
        app(words, standalone_mode=False)
    seconds, run = perf_counter() - clock, out / "transduce-001"
    found = {
        name: {"seconds": round(spent, 2), "megabytes": round(parts.most[name] / 1e6)}
        for name, spent in sorted(parts.seconds.items(), key=lambda part: -part[1])
    }
    sizes = {path.name: path.stat().st_size for path in run.iterdir() if path.is_file()}
    return {
        "images": n_images,
        "classes": n_classes,
        "seconds": round(seconds, 1),
        "megabytes": round(max(parts.most.values()) / 1e6),
        "parts": found,
        "files": {name: round(size / 1e6, 2) for name, size in sorted(sizes.items())},
    }


RUNS: dict[str, Callable[..., dict[str, Any]]] = {"label": run_label}

if __name__ == "__main__":
    os.environ.setdefault("TRANSDUCE_CACHE", str(Path(sys.argv[2]) / "cache"))
    print(json.dumps(RUNS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
