"""One job after the other, in this process: for tests, timing and debugging."""

from collections.abc import Callable, Iterator, Sequence

from transduce.benchmark.executors.executor import Job, Outcome
from transduce.benchmark.labelled_features import LabelledFeatures


class SerialExecutor:
    name = "serial"
    workers = 1

    def run(
        self,
        work: Callable[[LabelledFeatures, Job], Outcome],
        features: LabelledFeatures,
        jobs: Sequence[Job],
    ) -> Iterator[tuple[int, Outcome]]:
        for place, job in enumerate(jobs):
            yield place, work(features, job)

    def close(self) -> None:
        pass
