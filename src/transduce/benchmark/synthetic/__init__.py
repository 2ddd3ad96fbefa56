"""A tiny world of drawn pictures, for demonstrations and tests that need no download.

Each picture shows one thing: a shape of a color, filled with a texture. The embedded encoder was
trained on the captions of `SEEN` pairs in the `training` look; it never met the `UNSEEN` pairs,
nor the `shifted` look (other backgrounds, tinted light, blur, noise).
"""

from transduce.benchmark.synthetic.drawing import LOOKS, PICTURE_SIZE, Look, draw
from transduce.benchmark.synthetic.things import (
    COLORS,
    SEEN,
    SHAPES,
    TEXTURES,
    UNSEEN,
    Thing,
    name_of,
)

__all__ = [
    "COLORS",
    "LOOKS",
    "PICTURE_SIZE",
    "SEEN",
    "SHAPES",
    "TEXTURES",
    "UNSEEN",
    "Look",
    "Thing",
    "draw",
    "name_of",
]
