"""The commands of a run of a million images as they are typed: label, review, certify.

`python -m benchmarks.scale_label [IMAGES ...] [--fresh] [--folder DIR]` writes
results/scale_label.json and .md; by default 50,000, 200,000 and a million images x 1000 classes. A
feature store is made of simulated embeddings (benchmarks/planted.py), with a sentence for each
class, and a name, a hash and the path of one picture for each image. `transduce label` runs in a
process that notes the seconds of each part and the most anonymous memory that was held in it;
`transduce review` is served and asked over HTTP, `transduce certify` is run after an audit of 100
images, answered the same way.
"""

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial, wraps
from pathlib import Path
from time import perf_counter, sleep
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
from PIL import Image

from benchmarks.planted import BLOCK, WIDTH, Planted
from benchmarks.record import Record, Row
from transduce.encoders.encoder import Identity
from transduce.encoders.precomputed import TEXTS, write_texts
from transduce.encoders.prompts import DEFAULT_TEMPLATE, sentences
from transduce.features.layout import META, Meta, Settings, Shard
from transduce.features.writing import Row as StoreRow
from transduce.features.writing import finish, seal, write_shard

CLASSES = 1000
SIZES = (50_000, 200_000, 1_000_000)
AUDITED = 100
NOTE = """\
Simulated embeddings of 512 dimensions (benchmarks/planted.py, seed 0) in a feature store, 1000 \
classes. memory: the most that was resident in the part without mapped files, beyond what the \
process held before the command began (label), or of the whole process (review, certify). A part \
within another counts for itself: solve is without doubt. review is served on this machine: open \
is from the command to the first answer with an image, the others are single requests. load: of \
the machine, which has two cores."""
REST = "the rest"


def held(process: int | str = "self") -> int:
    """The anonymous memory of a process, in bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
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
            StoreRow(f"part-{n // 1000:04d}/image-{n:07d}.jpg", str(picture), _hash(n), 64, 64)
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


def run_label(folder: Path, images: str, classes: str) -> list[Row]:
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
    rows = [
        {"part": name, "seconds": round(spent, 2), "megabytes": round(parts.most[name] / 1e6)}
        for name, spent in sorted(parts.seconds.items(), key=lambda part: -part[1])
    ]
    run = out / "transduce-001"
    sizes = {path.name: path.stat().st_size for path in run.iterdir() if path.is_file()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:4]
    whole: Row = {
        "part": "all of it",
        "seconds": round(perf_counter() - clock, 1),
        "megabytes": round(max(parts.most.values()) / 1e6),
        "said": ", ".join(f"{name} {sizes[name] / 1e6:,.1f} MB" for name in largest),
    }
    return [whole, *rows]


class Served:
    """`transduce review` in a process of its own, and requests to it."""

    def __init__(self, run: Path, *words: str) -> None:
        self._clock = perf_counter()
        command = [sys.executable, "-m", "transduce", "review", str(run), "--no-open", *words]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        found = re.search(r"Open (\S+)", self._process.stdout.readline())
        assert found is not None
        self._address = found[1]

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        """The answer to a request."""
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self._address + path, data), timeout=300) as answer:
            return json.loads(answer.read())

    def part(self, name: str, path: str, body: dict[str, Any] | None = None) -> Row:
        """A row of the table: a request, or from the command to the answer for `open`."""
        clock = self._clock if name == "open" else perf_counter()
        self.ask(path, body)
        seconds = round(perf_counter() - clock, 2)
        return {"part": name, "seconds": seconds, "megabytes": round(held(self.id) / 1e6)}

    @property
    def id(self) -> int:
        """The number of the process."""
        return self._process.pid

    def end(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)


def run_review(folder: Path, images: str, classes: str) -> list[Row]:
    """Open the review of the run, and ask what a page asks."""
    served = Served(folder / f"runs-{images}-{classes}" / "transduce-001")
    rows = [served.part("open", "state")]
    for name in ("an answer", "the next answer"):
        item = served.ask("state")["item"]
        body = {"row": item["row"], "label": item["label"], "same": True}
        rows.append(served.part(name, "answer", body))
    rows.append(served.part("groups, for the first time", "groups"))
    group = served.ask("groups")["groups"][0]
    rows.append(served.part("a grid", "grid", {"text": group["id"]}))
    rows.append(served.part("more like this", "like", {"row": 7}))
    rows.append(served.part("ask about everything", "everything", {}))
    served.end()
    return rows


def run_certify(folder: Path, images: str, classes: str) -> list[Row]:
    """Audit the run by calling every label right, and certify it."""
    run = folder / f"runs-{images}-{classes}" / "transduce-001"
    served = Served(run, "--audit", str(AUDITED), "--seed", "0")
    rows = [served.part("open", "state")]
    for _ in range(AUDITED):
        item = served.ask("state")["item"]
        last = served.part("an answer", "answer", {"row": item["row"], "label": item["label"]})
    served.end()
    rows.append(last)
    for name, words in (("certify", []), ("certify --sets 0.9", ["--sets", "0.9"])):
        clock, most = perf_counter(), 0
        command = [sys.executable, "-m", "transduce", "certify", str(run), *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            most = max(most, held(process.pid))
            sleep(0.02)
        assert process.returncode == 0
        assert process.stdout is not None
        said = process.stdout.read().decode().splitlines()
        rows.append({
            "part": name,
            "seconds": round(perf_counter() - clock, 2),
            "megabytes": round(most / 1e6),
            "said": next((line for line in said if line.startswith("Certified")), ""),
        })  # fmt: skip
    return rows


RUNS: dict[str, Callable[..., list[Row]]] = {
    "label": run_label,
    "review": run_review,
    "certify": run_certify,
}
COLUMNS: dict[str, Callable[[Row], str]] = {
    "images": lambda row: f"{row['images']:,}",
    "command": lambda row: f"transduce {row['command']}",
    "part": lambda row: str(row["part"]),
    "seconds": lambda row: f"{row['seconds']:.1f}" if row["seconds"] >= 10 else f"{row['seconds']}",  # type: ignore[operator]
    "memory": lambda row: f"{row['megabytes']:,} MB",
    "": lambda row: str(row.get("said", "")),
    "load": lambda row: str(row["load"]),
}


def measure(command: str, folder: Path, images: int) -> Row:
    """Run a command in a process of its own; return its rows."""
    words = [sys.executable, "-m", "benchmarks.scale_label", command, str(images)]
    words += ["--folder", str(folder)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return {"rows": json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    """Measure what is not recorded yet, and write the table; or one command, in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="numbers of images")
    parser.add_argument("--fresh", action="store_true", help="measure them again")
    parser.add_argument("--folder", type=Path, help="for stores and runs, up to 3 GB")
    chosen = parser.parse_args()
    words: list[str] = chosen.words
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = chosen.folder or Path(temporary)
        os.environ.setdefault("TRANSDUCE_CACHE", str(folder / "cache"))
        if words and words[0] in RUNS:
            print(json.dumps(RUNS[words[0]](folder, words[1], str(CLASSES))))
            return
        sizes = [int(word) for word in words] or list(SIZES)
        record = Record("scale_label", "python -m benchmarks.scale_label", NOTE, fresh=False)
        if chosen.fresh:
            record.rows[:] = [row for row in record.rows if row["images"] not in sizes]
        for size in sizes:
            for command in RUNS:
                print(size, command, flush=True)
                key = {"images": size, "command": command}
                record.add(key, partial(measure, command, folder, size))
    record.rows.sort(
        key=lambda row: (int(str(row["images"])), list(RUNS).index(str(row["command"])))
    )
    lines: list[Row] = [
        {**measured, **part}
        for measured in record.rows
        for part in measured["rows"]  # type: ignore[attr-defined]
    ]
    print(record.write_table("A run of a million images", COLUMNS, lines))


if __name__ == "__main__":
    main()
