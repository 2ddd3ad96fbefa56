"""What an executor is: it runs jobs on shared features, each counted once, in any order."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from transduce.benchmark.labeled_features import LabeledFeatures

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

MOST_LOSSES = 3  # of workers in a row, without one job finished


class Executor(Protocol):
    """`run` yields (place of the job, its outcome) exactly once for each job.

    A job that a lost worker had in hand is run again; features are shared by all workers of a
    machine, not copied for each.
    """

    name: str
    workers: int

    def run(
        self,
        work: Callable[[LabeledFeatures, Job], Outcome],
        features: LabeledFeatures,
        jobs: Sequence[Job],
    ) -> Iterator[tuple[int, Outcome]]: ...

    def close(self) -> None: ...
