"""Zero-shot CLIP, one image at a time: the starting point of every other method.

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML 2021.
The class of the largest cosine (equation 1 of the paper); nothing is learned from the batch.
Use it as the reference, for single images, and wherever a batch is too small to say anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from transduce.methods.method import Support, accept
from transduce.task import Prediction, Space, Task, Trace


@final
@dataclass(frozen=True, kw_only=True)
class ZeroShot:
    """Label images one by one by the class of the largest cosine; no settings.

    The encoder's own answer, `task.zero_shot`: what every other method starts from and is
    compared with. Shots are not used.

    Examples
    --------
    >>> import numpy as np
    >>> from transduce import Task, ZeroShot
    >>> task = Task.from_embeddings([[0.9, 0.1], [0.2, 1.0]], np.eye(2))
    >>> ZeroShot().predict(task).labels.tolist()
    [0, 1]
    """

    name: ClassVar[str] = "zero-shot"
    spaces: ClassVar[tuple[Space, ...]] = ("probability", "embedding")
    support: ClassVar[Support] = "unused"
    inductive: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    def predict(self, task: Task) -> Prediction:
        """Return a copy of the task's zero-shot probabilities."""
        accept(self, task)
        trace = Trace(objective=(), iterations=0, converged=True)
        return Prediction(probabilities=task.zero_shot.copy(), trace=trace)
