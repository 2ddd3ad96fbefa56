"""One job after the other, in this process: for tests, timing and debugging."""

from collections.abc import Callable, Iterator, Sequence

from transduce.benchmark.executors.executor import Job, Outcome
from transduce.benchmark.labeled_features import LabeledFeatures


class SerialExecutor:
    name = "serial"
    workers = 1

    def run(
        self,
        work: Callable[[LabeledFeatures, Job], Outcome],
        features: LabeledFeatures,
        jobs: Sequence[Job],
    ) -> Iterator[tuple[int, Outcome]]:
        for place, job in enumerate(jobs):
            yield place, work(features, job)

    def close(self) -> None:
        pass
