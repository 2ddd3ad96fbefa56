"""Workers of a Ray cluster, or of a local one if none is named. Features are put there once."""

from collections.abc import Iterator, Sequence

from transduce.benchmark.executors.executor import Answer, Job, Work
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.machine.cluster import Cluster


class RayExecutor:
    """Workers of the cluster at `address`; of this machine, if it is None."""

    name = "ray"

    def __init__(self, workers: int = 0, address: str | None = None) -> None:
        self._cluster = Cluster(workers, address)
        self.workers = self._cluster.workers

    def run(
        self, work: Work[Job, Answer], features: LabeledFeatures, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Answer]]:
        """Yield (index of the job, its answer) as jobs are completed."""
        return self._cluster.run(self._cluster.tasks(work, features), jobs)

    def close(self) -> None:
        """Leave the cluster, or end the local one."""
        self._cluster.close()
