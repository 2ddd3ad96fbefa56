"""Shapes, colors and textures of the drawings, and which pairs the encoder was trained on."""

from typing import NamedTuple

SHAPES = (
    "circle", "square", "triangle", "pentagon", "hexagon", "star",
    "cross", "heart", "crescent", "ring", "arrow", "diamond",
)  # fmt: skip
COLORS = {
    "red": (210, 35, 40),
    "orange": (245, 135, 25),
    "yellow": (240, 215, 45),
    "green": (40, 150, 65),
    "blue": (40, 85, 205),
    "purple": (125, 60, 165),
    "pink": (245, 140, 185),
    "brown": (120, 75, 40),
    "black": (25, 25, 28),
    "white": (245, 245, 242),
}
TEXTURES = ("solid", "striped", "dotted", "checkered")

Pair = tuple[str, str]  # color, shape


class Thing(NamedTuple):
    """Shape, color and texture of what a drawing shows."""

    shape: str
    color: str
    texture: str


def name_of(pair: Pair) -> str:
    """Return the class name of a pair, such as "red circle"."""
    return " ".join(pair)


def _is_unseen(color: int, shape: int) -> bool:
    """Hold out 3 of 10 colors per shape, rotating, so that every word occurs in training."""
    return (color - 3 * shape) % len(COLORS) < 3


_PAIRS = [
    (s, c, (color, shape)) for s, shape in enumerate(SHAPES) for c, color in enumerate(COLORS)
]
SEEN: tuple[Pair, ...] = tuple(pair for s, c, pair in _PAIRS if not _is_unseen(c, s))
UNSEEN: tuple[Pair, ...] = tuple(pair for s, c, pair in _PAIRS if _is_unseen(c, s))
