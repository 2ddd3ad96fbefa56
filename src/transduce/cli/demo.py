"""`transduce demo`: draw a folder of images and label it, offline, with the encoder `shapes`."""

import csv
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.console import say

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Int

N_UNSEEN = 36  # pairs of shape and color that the encoder `shapes` was not trained on
TYPICAL = 10  # the median of the seeds 0 to 19 by wrong labels: results/trust.md
INTRODUCTION = """\
This world is drawn, not photographed: colored shapes, and an encoder of them.
The 36 classes are pairs that the encoder `shapes` was not trained on, in other
light, blurred and noisy; some of them are drawn. It is surer of what it sees
than it should be: compare Expect with Truth at the end.
"""


@dataclass(frozen=True)
class DrawnFolder:
    """A folder of drawn images and the index in UNSEEN of what each shows."""

    files: tuple[Path, ...]
    truth: "Int[np.ndarray, ' image']"


def demo_command(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to draw and label.")] = Path(
        "out/demo"
    ),
    images: Annotated[
        int, typer.Option(min=1, max=100_000, metavar="N", help="How many images to draw.")
    ] = 300,
    classes: Annotated[
        int,
        typer.Option(min=1, max=N_UNSEEN, metavar="N", help="How many of the 36 classes to draw."),
    ] = 8,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the drawing.")] = TYPICAL,
) -> None:
    """Draw images of shapes, label them jointly, and leave a report to look at.

    Needs no network and no data. Exit codes are those of transduce label.
    """
    from transduce.benchmark.synthetic import UNSEEN, name_of
    from transduce.encoders.onnx import load_shapes

    say(INTRODUCTION)
    load_shapes().embed_texts([name_of(UNSEEN[0])])  # a missing extra is reported before drawing
    start = time.perf_counter()
    drawn = draw_folder(out / "images", images=images, classes=classes, seed=seed)
    write_lists(out, drawn)
    say(f"Drew {images} images of {classes} classes in {time.perf_counter() - start:.1f} s")
    _label(os.path.relpath(out))


def draw_folder(folder: Path, *, images: int, classes: int, seed: int) -> DrawnFolder:
    """Draw images of `classes` unseen pairs, in the look the encoder was not trained on."""
    import numpy as np

    from transduce.benchmark.synthetic import LOOKS, TEXTURES, UNSEEN, Thing, draw

    generator = np.random.default_rng(seed)
    present = generator.choice(len(UNSEEN), classes, replace=False)
    truth = generator.choice(present, images)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("drawn-*.png"):
        old.unlink()
    files = []
    for number, pair in enumerate(truth, start=1):
        color, shape = UNSEEN[pair]
        thing = Thing(shape, color, TEXTURES[generator.integers(len(TEXTURES))])
        files.append(folder / f"drawn-{number:04d}.png")
        draw(thing, LOOKS["shifted"], generator).save(files[-1])
    return DrawnFolder(tuple(files), truth)


def write_lists(folder: Path, drawn: DrawnFolder) -> None:
    """Write classes.txt, the names to choose from, and truth.csv, what each image shows."""
    from transduce.benchmark.synthetic import UNSEEN, name_of

    names = [name_of(pair) for pair in UNSEEN]
    (folder / "classes.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    with (folder / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "label"])
        writer.writerows(
            [path.name, names[pair]] for path, pair in zip(drawn.files, drawn.truth, strict=True)
        )


def _label(folder: str) -> None:
    """Print and run the `transduce label` command of the demo."""
    from transduce.cli.main import app

    words = ["label", f"{folder}/images", "--classes-file", f"{folder}/classes.txt"]
    words += ["--encoder", "shapes", "--truth", f"{folder}/truth.csv", "--out", folder]
    say(f"\n$ transduce {' '.join(words)}")
    before, sys.argv = sys.argv, ["transduce", *words]  # the report names the command
    try:
        code = app(words, prog_name="transduce", standalone_mode=False)
    finally:
        sys.argv = before
    raise typer.Exit(code or 0)
