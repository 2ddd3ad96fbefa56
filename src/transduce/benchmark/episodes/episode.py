"""A task, and beside it the truth that no method sees."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from transduce.task import Task


@dataclass(frozen=True, eq=False)
class Episode:
    """`labels` are the classes of the task's queries."""

    task: Task
    labels: Int[np.ndarray, " query"]
