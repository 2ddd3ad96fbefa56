"""Adam and AdamW, for the methods that train a few vectors: no network, no torch.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015; Loshchilov and Hutter,
"Decoupled Weight Decay Regularization", ICLR 2019.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

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
        self._mean += (1 - FIRST) * (gradient - self._mean)
        self._square += (1 - SECOND) * (gradient * gradient - self._square)
        mean = self._mean / (1 - FIRST**self._steps)
        square = self._square / (1 - SECOND**self._steps)
        moved = parameters * (1 - learning_rate * self.weight_decay)
        moved -= learning_rate * mean / (np.sqrt(square) + self.epsilon)
        return moved
