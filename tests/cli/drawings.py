"""Drawings of three classes, and the words with which they are labeled."""

import numpy as np

from transduce.benchmark.synthetic import LOOKS, TEXTURES, Thing, draw

CLASSES = "red circle,blue square,green star"
DRAWN = ("--classes", CLASSES, "--encoder", "shapes")


def write_drawings(folder, count=9, seed=0):
    """Drawings of the world of `shapes`, `count` of three classes in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    pairs = [("circle", "red"), ("square", "blue"), ("star", "green")]
    for number in range(count):
        thing = Thing(*pairs[number % 3], TEXTURES[0])
        draw(thing, LOOKS["training"], generator).save(folder / f"{number:03d}.png")
    return folder
