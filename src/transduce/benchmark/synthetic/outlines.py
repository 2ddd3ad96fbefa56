"""Outlines of the shapes, as polygons around the origin within radius 1."""

import numpy as np
from jaxtyping import Float

Polygon = Float[np.ndarray, "corner 2"]

ROUND = 64  # corners of a circle


def outline(shape: str) -> tuple[Polygon, Polygon | None]:
    """Return the outer polygon of a shape, and the one cut out of it, if any."""
    match shape:
        case "circle":
            return _regular(ROUND), None
        case "square" | "triangle" | "pentagon" | "hexagon":
            corners = {"triangle": 3, "square": 4, "pentagon": 5, "hexagon": 6}
            return _regular(corners[shape]), None
        case "star":
            return _star(), None
        case "cross":
            return _points(
                "-.3 -1 .3 -1 .3 -.3 1 -.3 1 .3 .3 .3 .3 1 -.3 1 -.3 .3 -1 .3 -1 -.3 -.3 -.3"
            )
        case "heart":
            return _heart(), None
        case "crescent":
            return _regular(ROUND), _regular(ROUND) * 0.85 + np.array([0.45, 0.0])
        case "ring":
            return _regular(ROUND), _regular(ROUND) * 0.55
        case "arrow":
            return _points("1 0 .2 -.75 .2 -.28 -1 -.28 -1 .28 .2 .28 .2 .75")
        case "diamond":
            return _points("1 0 0 .55 -1 0 0 -.55")
    raise KeyError(shape)


def _regular(corners: int) -> Polygon:
    angles = 2 * np.pi * np.arange(corners) / corners
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _star() -> Polygon:
    star = _regular(10)
    star[1::2] *= 0.42
    return star


def _heart() -> Polygon:
    t = 2 * np.pi * np.arange(ROUND) / ROUND
    across = 16 * np.sin(t) ** 3
    down = -(13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t))
    return np.stack([across, down], axis=1) / 17.0


def _points(numbers: str) -> tuple[Polygon, None]:
    return np.array(numbers.split(), dtype=float).reshape(-1, 2), None
