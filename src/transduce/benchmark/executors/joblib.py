"""Processes of this machine. Large arrays reach them as memory maps of one file, not as copies."""

from collections.abc import Callable, Iterator, Sequence

from transduce.benchmark.executors.executor import MOST_LOSSES, Job, Outcome
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.errors import InvalidSetting, WorkerFailed
from transduce.simplex.threads import available_cores

SHARED_FROM = "64K"  # bytes of an array; smaller ones travel faster than they are mapped


class JoblibExecutor:
    name = "joblib"

    def __init__(self, workers: int = 0) -> None:
        if workers < 0:
            raise InvalidSetting(f"Expected at least 0 workers (0: one per core), found {workers}.")
        self.workers = workers or available_cores()

    def run(
        self,
        work: Callable[[LabeledFeatures, Job], Outcome],
        features: LabeledFeatures,
        jobs: Sequence[Job],
    ) -> Iterator[tuple[int, Outcome]]:
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        waiting = dict(enumerate(jobs))
        losses = 0
        while waiting:
            try:
                for place, outcome in self._attempt(work, features, waiting):
                    del waiting[place]
                    losses = 0
                    yield place, outcome
            except TerminatedWorkerError:
                # What the pool had in hand is gone; what it had delivered is not.
                losses += 1
                if losses == MOST_LOSSES:
                    raise WorkerFailed(
                        f"Expected workers to live, found {losses} killed in a row; is there too "
                        f"little memory for {self.workers}? Lower --workers."
                    ) from None

    def _attempt(
        self,
        work: Callable[[LabeledFeatures, Job], Outcome],
        features: LabeledFeatures,
        waiting: dict[int, Job],
    ) -> Iterator[tuple[int, Outcome]]:
        from joblib import Parallel, delayed

        pool = Parallel(
            n_jobs=self.workers,
            return_as="generator_unordered",
            max_nbytes=SHARED_FROM,
            batch_size=1,
            pre_dispatch="2*n_jobs",
        )
        return iter(pool(delayed(_placed)(work, features, *item) for item in list(waiting.items())))

    def close(self) -> None:
        """Nothing to do: joblib keeps its processes for the next call, and ends them with us."""


def _placed(
    work: Callable[[LabeledFeatures, Job], Outcome],
    features: LabeledFeatures,
    place: int,
    job: Job,
) -> tuple[int, Outcome]:
    return place, work(features, job)
