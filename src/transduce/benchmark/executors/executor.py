"""The interface of an executor: jobs on shared features, each answered once, in any order."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from transduce.benchmark.labeled_features import LabeledFeatures

Job = TypeVar("Job")
Answer = TypeVar("Answer")
Work = Callable[[LabeledFeatures, Job], Answer]


class BenchExecutor(Protocol):
    """Runs jobs in one or several processes.

    A job that a lost worker had in hand is run again; features are shared by all workers of a
    machine, not copied for each.
    """

    name: str
    workers: int

    def run(
        self, work: Work[Job, Answer], features: LabeledFeatures, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Answer]]:
        """Yield (index of the job, its answer) exactly once for each job, in any order."""
        ...

    def close(self) -> None:
        """End the workers that the executor started."""
        ...
