"""What the pipeline costs over the bare encoder, and its memory as the number of images grows.

`python -m benchmarks.embedding [--fresh]`. ViT-B/32 with random weights, through the library's own
torch and onnxruntime encoders. Bare and pipeline take turns within a run, so that a busy machine
slows both; the ratios compare neighbors.
"""

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.record import Record, Row
from transduce.encoders.encoder import Encoder, Identity, Preprocessing
from transduce.features.embedding import Resources, embed
from transduce.images.decoding import Decoding, decode

BATCH = 32
ROUNDS = 3
DIMENSION = 512
WEB, PHOTO = (500, 375), (4000, 3000)  # as on the web (and in ImageNet); 12 megapixels
CASES = (
    # encoder, size, images, fast decode
    ("torch", WEB, 192, False),
    ("onnx", WEB, 192, False),
    ("onnx", PHOTO, 32, False),
    ("onnx", PHOTO, 32, True),
)
MEMORY_SIZES = (1_000, 4_000, 16_000)
NOTE = (
    "ViT-B/32, random weights, CPU, batches of 32. Bare: the forward pass on pixels already in "
    "memory. Pipeline: `embed` from JPEG files to a finished store, its start included. Wall "
    f"and CPU: pipeline over bare, the median of {ROUNDS} rounds in which both take turns. The "
    "last rows: peak memory of the process and its two workers together, with an encoder that "
    "costs nothing."
)


def write_images(folder: Path, size: tuple[int, int], count: int, different: int) -> None:
    """Write smooth colors with a little noise, which JPEG stores about as large as photographs."""
    folder.mkdir()
    random = np.random.default_rng(0)
    width, height = size
    for number in range(different):
        coarse = random.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC))
        noise = random.normal(0, 8, (height, width, 1)).astype(np.float32)
        pixels = np.clip(smooth + noise, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:05d}.jpg", quality=90)
    for number in range(different, count):
        (folder / f"{number:05d}.jpg").hardlink_to(folder / f"{number % different:05d}.jpg")


def torch_encoder(folder: Path) -> Encoder:
    """Return ViT-B/32 with random weights, by the library's torch encoder."""
    import torch

    from transduce.encoders.torchvision_stand_in import import_torchvision

    import_torchvision()
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    from transduce.encoders.torch_towers import TextInput, TorchEncoder

    torch.manual_seed(0)
    config = CLIPVisionConfig(
        hidden_size=768,
        intermediate_size=3072,
        num_hidden_layers=12,
        num_attention_heads=12,
        patch_size=32,
        projection_dim=DIMENSION,
    )
    model = CLIPVisionModelWithProjection(config).eval()
    no_text = TextInput(lambda texts: np.zeros((len(texts), 1), np.int64), 1, 0, lambda: None)
    return TorchEncoder(
        name="random ViT-B/32",
        model=model,
        image_tower=lambda pixels: model(pixel_values=pixels).image_embeds,
        text_tower=lambda tokens: torch.ones(len(tokens), DIMENSION),
        text_input=no_text,
        preprocessing=Preprocessing(),
        settings={},
    )


def onnx_encoder(folder: Path) -> Encoder:
    """Return ViT-B/32 with random weights, exported to ONNX."""
    import torch

    from transduce.encoders.onnx import OnnxConfig, OnnxEncoder
    from transduce.encoders.tokenizers import TextSettings

    model: Any = torch_encoder(folder)
    folder.mkdir()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses torchvision; we do not
    torch.onnx.export(
        model.model,
        (torch.zeros(2, 3, 224, 224),),
        str(folder / "image.onnx"),
        input_names=["pixels"],
        output_names=["embeddings"],
        dynamic_shapes={"pixel_values": {0: torch.export.Dim("n")}},
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    for unused in ("text.onnx", "tokenizer.json"):  # only the image tower runs here
        (folder / unused).write_bytes(b"")
    OnnxConfig("random", DIMENSION, Preprocessing(), TextSettings("words", 1)).write(folder)
    return OnnxEncoder(folder)


ENCODERS: dict[str, Callable[[Path], Encoder]] = {"torch": torch_encoder, "onnx": onnx_encoder}


def measure_speed(kind: str, size: tuple[int, int], count: int, fast: bool) -> Row:
    """Return images per second of the bare encoder and of the pipeline, and their ratios."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        photos = folder / "photos"
        write_images(photos, size, count, different=min(count, 32 if size == WEB else 4))
        encoder = ENCODERS[kind](folder / "model")
        how = Decoding(encoder.preprocessing)
        first = [path.read_bytes() for path in sorted(photos.iterdir())[:BATCH]]
        pixels = np.stack([decode(data, how).pixels for data in first])
        encoder.embed_images(pixels)  # the first call allocates and plans
        rounds = []
        for turn in range(ROUNDS):
            bare = _timed(partial(_forward, encoder, pixels, count // BATCH))
            out = folder / f"feats{turn}"
            run = partial(embed, photos, encoder, out=out, batch_size=BATCH, fast_decode=fast)
            rounds.append((bare, _timed(run)))
    return {
        "bare": statistics.median(count / bare[0] for bare, _ in rounds),
        "pipeline": statistics.median(count / run[0] for _, run in rounds),
        "wall": statistics.median(run[0] / bare[0] for bare, run in rounds),
        "cpu": statistics.median(run[1] / bare[1] for bare, run in rounds),
    }


def _forward(encoder: Encoder, pixels: np.ndarray[Any, Any], batches: int) -> None:
    for _ in range(batches):
        encoder.embed_images(pixels)


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock, and of all processors in this process and its children."""
    before, start = os.times(), time.perf_counter()
    work()
    after = os.times()
    return time.perf_counter() - start, sum(after[:4]) - sum(before[:4])


class NoEncoder:
    """Costs nothing, so that the memory is the pipeline's own."""

    identity = Identity("none", "none", Preprocessing().describe(), DIMENSION)
    preprocessing = Preprocessing()
    embed_classes = Encoder.embed_classes

    def embed_images(self, pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return unit vectors made of the mean color."""
        rows = np.repeat(pixels.mean((2, 3)), DIMENSION // 3 + 1, axis=1)[:, :DIMENSION]
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def embed_texts(self, sentences: object) -> np.ndarray[Any, Any]:
        """Refuse: only images are embedded here."""
        raise NotImplementedError


def run_memory(count: int) -> None:
    """In a process of its own: embed so many small images, print the peak."""
    peak = PeakMemory()
    peak.start()
    with tempfile.TemporaryDirectory() as scratch:
        photos = Path(scratch) / "photos"
        write_images(photos, (64, 48), count, different=32)
        embed(photos, NoEncoder(), out=Path(scratch) / "feats", resources=Resources(workers=2))
    print(json.dumps({"bytes": peak.bytes}))


class PeakMemory(threading.Thread):
    """The most that this process and its children have held together, looked at often."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes = 0

    def run(self) -> None:
        """Look at the memory 20 times a second."""
        while True:
            tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
            children = " ".join(_text(task / "children") for task in tasks)
            pids = [str(os.getpid()), *children.split()]
            self.bytes = max(self.bytes, sum(_resident(pid) for pid in pids))
            time.sleep(0.05)


def _resident(pid: str) -> int:
    """Shared pages are divided among their holders: a child just forked is not counted twice."""
    for line in _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):  # the thread or process has just ended
        return ""


def measure_memory(count: int) -> Row:
    """Return the peak memory of embedding so many images, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.embedding", "--memory", str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def _megabytes(row: Row) -> str:
    return f"{int(str(row['bytes'])) / 1e6:.0f} MB" if "bytes" in row else ""


def _number(name: str, form: str) -> Callable[[Row], str]:
    return lambda row: format(float(str(row[name])), form) if name in row else ""


COLUMNS: dict[str, Callable[[Row], str]] = {
    "encoder": lambda row: str(row["encoder"]),
    "pictures": lambda row: f"{row['pictures']:,} of {row['size']}",
    "decoding": lambda row: str(row["decoding"]),
    "bare img/s": _number("bare", ".1f"),
    "pipeline img/s": _number("pipeline", ".1f"),
    "wall": _number("wall", ".2f"),
    "CPU": _number("cpu", ".2f"),
    "peak memory": _megabytes,
}


def _cases() -> Iterator[tuple[Row, Callable[[], Row]]]:
    for kind, size, count, fast in CASES:
        key: Row = {
            "encoder": kind,
            "size": f"{size[0]} x {size[1]}",
            "pictures": count,
            "decoding": "fast" if fast else "exact",
        }
        yield key, partial(measure_speed, kind, size, count, fast)
    for count in MEMORY_SIZES:
        key = {"encoder": "none", "size": "64 x 48", "pictures": count, "decoding": "exact"}
        yield key, partial(measure_memory, count)


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fresh", action="store_true", help="measure every row again")
    chosen = parser.parse_args(arguments)
    if chosen.memory:
        run_memory(chosen.memory)
        return
    record = Record("embedding", "python -m benchmarks.embedding", NOTE, fresh=chosen.fresh)
    for key, measure in _cases():
        record.add(key, measure)
    print(record.write_table("Embedding: the pipeline against the bare encoder", COLUMNS))


if __name__ == "__main__":
    main()
