"""The serial executor: one job after the other, for tests, timing and debugging."""

from collections.abc import Iterator, Sequence

from transduce.benchmark.executors.executor import Answer, Job, Work
from transduce.benchmark.labeled_features import LabeledFeatures


class SerialExecutor:
    """No workers: jobs run in the calling process."""

    name = "serial"
    workers = 1

    def run(
        self, work: Work[Job, Answer], features: LabeledFeatures, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Answer]]:
        """Yield (index of the job, its answer) in order."""
        for index, job in enumerate(jobs):
            yield index, work(features, job)

    def close(self) -> None:
        """Do nothing: there are no workers."""
