"""The joblib executor: processes that read large arrays as memory maps of one file."""

from collections.abc import Iterator, Sequence

from transduce.benchmark.executors.executor import Answer, Job, Work
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.errors import InvalidSetting, WorkerFailed
from transduce.machine.cluster import MOST_LOSSES
from transduce.machine.processes import end_with_us
from transduce.simplex.threads import available_cores

SHARED_FROM = "64K"  # bytes of an array; smaller ones travel faster than they are mapped


class JoblibExecutor:
    """Processes of this machine, started again if one is killed."""

    name = "joblib"

    def __init__(self, workers: int = 0) -> None:
        if workers < 0:
            raise InvalidSetting(f"Expected at least 0 workers (0: one per core), found {workers}.")
        self.workers = workers or available_cores()

    def run(
        self, work: Work[Job, Answer], features: LabeledFeatures, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Answer]]:
        """Yield (index of the job, its answer) as they come."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        waiting = dict(enumerate(jobs))
        losses = 0
        while waiting:
            try:
                for index, answer in self._attempt(work, features, waiting):
                    del waiting[index]
                    losses = 0
                    yield index, answer
            except TerminatedWorkerError:
                # What the pool had in hand is gone; what it had delivered is not.
                losses += 1
                if losses == MOST_LOSSES:
                    raise WorkerFailed(
                        f"Expected workers to live, found {losses} killed in a row; is there too "
                        f"little memory for {self.workers}? Lower --workers."
                    ) from None

    def _attempt(
        self, work: Work[Job, Answer], features: LabeledFeatures, waiting: dict[int, Job]
    ) -> Iterator[tuple[int, Answer]]:
        from joblib import Parallel, delayed

        end_with_us()
        pool = Parallel(
            n_jobs=self.workers,
            return_as="generator_unordered",
            max_nbytes=SHARED_FROM,
            batch_size=1,
            pre_dispatch="2*n_jobs",
        )
        jobs = list(waiting.items())
        return iter(pool(delayed(_numbered)(work, features, *job) for job in jobs))

    def close(self) -> None:
        """Do nothing: joblib keeps its processes for the next call and ends them with this one."""


def _numbered(
    work: Work[Job, Answer], features: LabeledFeatures, index: int, job: Job
) -> tuple[int, Answer]:
    return index, work(features, job)
