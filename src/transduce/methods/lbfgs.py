"""L-BFGS for the methods that fit one matrix of weights to a smooth convex objective.

Liu and Nocedal, "On the limited memory BFGS method for large scale optimization", 1989. It works in
the precision of its start: the vectors of its memory are as long as the matrix has entries, and in
single precision they cost half.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

MEMORY = 10  # pairs of steps and changes of the gradient
SUFFICIENT = 1e-4  # share of the decrease that the slope promises
SMALLEST_STEP = 1e-6
SETTLED = 1e-3  # relative decrease of the objective in one step

Matrix = Float[np.ndarray, "row column"]


@dataclass(frozen=True)
class Minimum:
    """Where the search ended."""

    parameters: Matrix
    objective: list[float]  # after each iteration
    converged: bool


def minimize(
    value_and_gradient: Callable[[Matrix], tuple[float, Matrix]],
    start: Matrix,
    flat: Callable[[Matrix], bool],
    max_iter: int,
) -> Minimum:
    """Minimize a convex function of a matrix.

    It has converged if the gradient is `flat` and the objective has settled, or if rounding
    leaves nothing to gain.
    """
    parameters = start
    value, gradient = value_and_gradient(parameters)
    pairs: deque[tuple[Matrix, Matrix, float]] = deque(maxlen=MEMORY)
    objective: list[float] = []
    rounding = 64 * float(np.finfo(start.dtype).eps)
    while len(objective) < max_iter:
        direction = _direction(gradient, pairs)
        slope, length = float(np.vdot(gradient, direction)), 1.0
        while True:
            moved = parameters + start.dtype.type(length) * direction
            new_value, new_gradient = value_and_gradient(moved)
            if new_value <= value + SUFFICIENT * length * slope or length < SMALLEST_STEP:
                break
            length /= 2
        gained = (value - new_value) / max(abs(new_value), 1.0)
        if gained > 0.0:
            change = new_gradient - gradient
            step = moved - parameters
            curvature = float(np.vdot(step, change))
            if curvature > 0.0:
                pairs.append((step, change, curvature))
            parameters, value, gradient = moved, new_value, new_gradient
        objective.append(value)
        if gained <= rounding or (gained <= SETTLED and flat(gradient)):
            return Minimum(parameters, objective, converged=True)
    return Minimum(parameters, objective, converged=False)


def _direction(gradient: Matrix, pairs: deque[tuple[Matrix, Matrix, float]]) -> Matrix:
    """Minus the gradient times the inverse Hessian of the pairs, by the two-loop recursion."""
    kind = gradient.dtype.type
    direction = -gradient
    shares = []
    for step, change, curvature in reversed(pairs):
        shares.append(float(np.vdot(step, direction)) / curvature)
        direction -= kind(shares[-1]) * change
    if pairs:
        _, change, curvature = pairs[-1]
        direction *= kind(curvature / float(np.vdot(change, change)))
    for (step, change, curvature), share in zip(pairs, reversed(shares), strict=True):
        direction += kind(share - float(np.vdot(change, direction)) / curvature) * step
    return direction
