"""Sets of drawn images as arrays; image i depends on (seed, i) alone."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float32, UInt8

from transduce.benchmark.synthetic import LOOKS, TEXTURES, Look, Thing, draw
from transduce.benchmark.synthetic.things import Pair
from transduce.encoders.encoder import Preprocessing

PREPROCESSING = Preprocessing(size=48, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))


@dataclass(frozen=True)
class Drawn:
    """Images after the resize, still in bytes: an eighth of the memory of their pixels."""

    images: UInt8[np.ndarray, "image 48 48 3"]
    things: tuple[Thing, ...]


def draw_set(pairs: Sequence[Pair], count: int, look: str, seed: int, workers: int = 2) -> Drawn:
    """Return `count` drawings of the pairs, taking turns."""
    draw_number = partial(_draw_one, tuple(pairs), LOOKS[look], seed)
    if workers == 1:
        made = [draw_number(index) for index in range(count)]
    else:
        with ProcessPoolExecutor(workers) as pool:
            made = list(pool.map(draw_number, range(count), chunksize=200))
    return Drawn(np.stack([image for image, _ in made]), tuple(thing for _, thing in made))


def _draw_one(
    pairs: tuple[Pair, ...], look: Look, seed: int, index: int
) -> tuple[UInt8[np.ndarray, "48 48 3"], Thing]:
    generator = np.random.default_rng([seed, index])
    color, shape = pairs[index % len(pairs)]
    thing = Thing(shape, color, TEXTURES[generator.integers(len(TEXTURES))])
    normalized = PREPROCESSING(draw(thing, look, generator)).transpose(1, 2, 0)
    raw = normalized * np.array(PREPROCESSING.std) + np.array(PREPROCESSING.mean)
    return np.rint(255 * raw).astype(np.uint8), thing


def as_pixels(
    images: UInt8[np.ndarray, "image 48 48 3"],
) -> Float32[np.ndarray, "image 3 48 48"]:
    """Return the pixels that `PREPROCESSING` would have made of them."""
    mean, std = (np.array(part, np.float32) for part in (PREPROCESSING.mean, PREPROCESSING.std))
    # Kept as a transposed view: torch sees its channels-last order, which is faster here.
    return ((np.float32(1 / 255) * images - mean) / std).transpose(0, 3, 1, 2)
