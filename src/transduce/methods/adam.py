"""Adam and AdamW, for the methods that train a few vectors: no network, no torch.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015; Loshchilov and Hutter,
"Decoupled Weight Decay Regularization", ICLR 2019.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from transduce.simplex.threads import over_rows

FIRST, SECOND = 0.9, 0.999  # decay of the two moments, as everywhere


@dataclass
class Adam:
    """State of Adam on one array; `weight_decay` shrinks it apart from the gradient (AdamW)."""

    epsilon: float = 1e-8
    weight_decay: float = 0.0
    _steps: int = field(default=0, init=False)
    _mean: Float[np.ndarray, "row column"] | None = field(default=None, init=False)
    _square: Float[np.ndarray, "row column"] | None = field(default=None, init=False)

    def step(
        self,
        parameters: Float[np.ndarray, "row column"],
        gradient: Float[np.ndarray, "row column"],
        learning_rate: float,
    ) -> Float[np.ndarray, "row column"]:
        """Return the parameters after one step."""
        if self._mean is None or self._square is None:
            self._mean, self._square = np.zeros_like(gradient), np.zeros_like(gradient)
        self._steps += 1
        of_mean, of_square = 1 - FIRST**self._steps, 1 - SECOND**self._steps
        moved = np.empty_like(parameters)

        def work(rows: slice) -> None:
            # Every array is passed over once per line here, so the lines work on what the cache
            # holds: some rows, and one scratch array of their size.
            new, mean, square = gradient[rows], first[rows], second[rows]
            scratch = new - mean
            scratch *= 1 - FIRST
            mean += scratch
            np.multiply(new, new, out=scratch)
            scratch -= square
            scratch *= 1 - SECOND
            square += scratch
            np.multiply(square, 1 / of_square, out=scratch)
            np.sqrt(scratch, out=scratch)
            scratch += self.epsilon
            np.divide(mean, scratch, out=scratch)
            scratch *= learning_rate / of_mean
            np.multiply(parameters[rows], 1 - learning_rate * self.weight_decay, out=moved[rows])
            moved[rows] -= scratch

        first, second = self._mean, self._square
        over_rows(work, *parameters.shape)
        return moved
