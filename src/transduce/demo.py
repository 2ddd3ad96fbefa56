"""`make demo`: the whole road from pictures to labels, offline, in a drawn world.

Draws a folder of pictures of classes that the default encoder never saw, embeds it, labels it
one by one (zero-shot) and jointly (Hard EM-Dirichlet), and leaves everything to look at.
"""

import argparse
import csv
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int

from transduce.encoders.class_names import ClassNames
from transduce.encoders.default import load_default
from transduce.encoders.encoder import Encoder
from transduce.encoders.prompts import embed_classes
from transduce.errors import TransduceError
from transduce.features.extraction import extract, settings_for
from transduce.features.layout import META, read_meta
from transduce.features.store import FeatureStore
from transduce.methods import METHODS
from transduce.task import Prediction, Task
from transduce.world import LOOKS, TEXTURES, UNSEEN, Thing, draw, name_of

METHOD_NAMES = ("zero-shot", "hard-em-dirichlet")
INTRODUCTION = """\
This is a drawn world, not photographs: 12 shapes in 10 colours. The default
encoder was trained on 84 of the 120 pairs of shape and colour; the pictures of
this demo show some of the 36 others, on other backgrounds, in other light,
blurred and noisy. Any of the 36 may be meant: the methods are not told which.
"""


@dataclass(frozen=True)
class Drawing:
    """A folder of pictures and, beside it, what each shows (a place in UNSEEN)."""

    files: tuple[Path, ...]
    truth: Int[np.ndarray, " picture"]


def draw_folder(folder: Path, *, pictures: int, classes: int, seed: int) -> Drawing:
    """Pictures of `classes` of the unseen pairs, in the look the encoder was not trained on."""
    generator = np.random.default_rng(seed)
    present = generator.choice(len(UNSEEN), classes, replace=False)
    truth = generator.choice(present, pictures)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("picture-*.png"):
        old.unlink()
    files = []
    for number, pair in enumerate(truth, start=1):
        colour, shape = UNSEEN[pair]
        thing = Thing(shape, colour, TEXTURES[generator.integers(len(TEXTURES))])
        files.append(folder / f"picture-{number:04d}.png")
        draw(thing, LOOKS["shifted"], generator).save(files[-1])
    return Drawing(tuple(files), truth)


def embed_folder(
    encoder: Encoder, drawing: Drawing, store: Path
) -> Float32[np.ndarray, "image feature"]:
    """The road of `transduce embed`: decoded in processes, kept in a feature store."""
    if (store / META).exists() and read_meta(store).identity.encoder == encoder.identity.encoder:
        shutil.rmtree(store)  # of a run before, whose pictures are gone
    extract(str(drawing.files[0].parent), store, encoder, settings=settings_for(batch_size=64))
    features = FeatureStore.open(store)
    row_of = {name: row for row, name in enumerate(features.keys())}
    return features.embeddings()[[row_of[file.name] for file in drawing.files]]


def write_labels(
    path: Path, drawing: Drawing, classes: ClassNames, predictions: Sequence[Prediction]
) -> None:
    columns = [drawing.truth, *(prediction.labels for prediction in predictions)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "truth", *(name.replace("-", "_") for name in METHOD_NAMES)])
        for picture, *places in zip(drawing.files, *columns, strict=True):
            name = picture.relative_to(path.parent).as_posix()
            writer.writerow([name, *(classes.labels[place] for place in places)])


def run(folder: Path, *, pictures: int, classes: int, seed: int) -> list[float]:
    """Prints what happens; returns the accuracy of each method."""
    print(INTRODUCTION)
    encoder = load_default()
    names = ClassNames.of(name_of(pair) for pair in UNSEEN)
    texts = embed_classes(encoder, names)  # first, so that a missing extra is told at once

    started = time.perf_counter()
    drawing = draw_folder(folder / "pictures", pictures=pictures, classes=classes, seed=seed)
    _say("Drew", f"{pictures} pictures of {classes} classes", started)

    started = time.perf_counter()
    images = embed_folder(encoder, drawing, folder / "features")
    task = Task.from_embeddings(images, texts)
    _say("Embedded", f"{pictures} pictures", started)

    methods = [METHODS[name]() for name in METHOD_NAMES]
    methods[-1].predict(task)  # the first call of a process compiles or loads the kernels
    print(f"\n  {'method':<20} {'accuracy':>9} {'time':>10}")
    predictions, accuracies = [], []
    for method in methods:
        started = time.perf_counter()
        predictions.append(method.predict(task))
        milliseconds = 1e3 * (time.perf_counter() - started)
        accuracies.append(float((predictions[-1].labels == drawing.truth).mean()))
        print(f"  {method.name:<20} {accuracies[-1]:>9.1%} {milliseconds:>7.1f} ms")

    write_labels(folder / "labels.csv", drawing, names, predictions)
    print(f"\nLook at {folder / 'pictures'} and {folder / 'labels.csv'}")
    return accuracies


def _say(verb: str, what: str, started: float) -> None:
    print(f"{verb:<9} {what:<44} {time.perf_counter() - started:6.1f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m transduce.demo", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("--folder", type=Path, default=Path("out/demo"), help="where to draw")
    parser.add_argument("--pictures", type=partial(_count, most=100_000), default=300)
    parser.add_argument("--classes", type=partial(_count, most=len(UNSEEN)), default=8,
                        help=f"how many of the {len(UNSEEN)} are in the folder")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    try:
        run(chosen.folder, pictures=chosen.pictures, classes=chosen.classes, seed=chosen.seed)
    except TransduceError as error:
        parser.exit(2, f"{error}\n")


def _count(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {most}, found {text!r}")
    return int(text)


if __name__ == "__main__":
    main()
