"""`make demo`: `transduce label` from pictures to a report, offline, in a drawn world.

Draws a folder of pictures of classes that the default encoder never saw, then labels it with the
command that anyone would type, and leaves everything to look at.
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Int

from transduce.benchmark.synthetic import LOOKS, TEXTURES, UNSEEN, Thing, draw, name_of
from transduce.cli.main import main as transduce
from transduce.encoders.shapes import load_default
from transduce.errors import TransduceError

INTRODUCTION = """\
This is a drawn world, not photographs: 12 shapes in 10 colors. The default
encoder was trained on 84 of the 120 pairs of shape and color; the pictures of
this demo show some of the 36 others, on other backgrounds, in other light,
blurred and noisy. Any of the 36 may be meant: the method is not told which.
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
        color, shape = UNSEEN[pair]
        thing = Thing(shape, color, TEXTURES[generator.integers(len(TEXTURES))])
        files.append(folder / f"picture-{number:04d}.png")
        draw(thing, LOOKS["shifted"], generator).save(files[-1])
    return Drawing(tuple(files), truth)


def write_lists(folder: Path, drawing: Drawing) -> None:
    """What the command is given: the classes, and the truth to compare with."""
    names = [name_of(pair) for pair in UNSEEN]
    (folder / "classes.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    with (folder / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "label"])
        for picture, place in zip(drawing.files, drawing.truth, strict=True):
            writer.writerow([picture.name, names[place]])


def run(folder: Path, *, pictures: int, classes: int, seed: int) -> int:
    """Prints what happens; returns the exit code of the command."""
    print(INTRODUCTION)
    load_default().embed_texts([name_of(UNSEEN[0])])  # so that a missing extra is told at once
    started = time.perf_counter()
    drawing = draw_folder(folder / "pictures", pictures=pictures, classes=classes, seed=seed)
    write_lists(folder, drawing)
    print(f"Drew {pictures} pictures of {classes} classes in {time.perf_counter() - started:.1f} s")
    shown = os.path.relpath(folder)
    words = [
        "label", f"{shown}/pictures", "--classes-file", f"{shown}/classes.txt",
        "--truth", f"{shown}/truth.csv", "--out", shown,
    ]  # fmt: skip
    print(f"\n$ transduce {' '.join(words)}", flush=True)
    before, sys.argv = sys.argv, ["transduce", *words]
    try:
        transduce()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = before
    return 0


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
        code = run(
            chosen.folder, pictures=chosen.pictures, classes=chosen.classes, seed=chosen.seed
        )
    except TransduceError as error:
        parser.exit(2, f"{error}\n")
    parser.exit(code)


def _count(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {most}, found {text!r}")
    return int(text)


if __name__ == "__main__":
    main()
