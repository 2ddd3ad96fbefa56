"""Workers of a Ray cluster, or of a local one if none is named. Features are put there once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from transduce.benchmark.executors.executor import MOST_LOSSES, Job, Outcome
from transduce.errors import InvalidSetting, MissingExtra, WorkerFailed
from transduce.features.labelled import LabelledFeatures
from transduce.simplex.threads import available_cores

IN_FLIGHT = 3  # jobs for each worker, so that none waits for the next


class RayExecutor:
    name = "ray"

    def __init__(self, workers: int = 0, address: str | None = None) -> None:
        if workers < 0:
            raise InvalidSetting(f"Expected at least 0 workers (0: all cores), found {workers}.")
        try:
            import ray
        except ImportError:
            raise MissingExtra("The ray executor", "ray") from None
        self._ray: Any = ray
        self._mine = not ray.is_initialized()
        if self._mine:
            self._start(workers, address)
        self.workers = workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _start(self, workers: int, address: str | None) -> None:
        if address is not None:
            try:
                self._ray.init(address=address, logging_level="ERROR", log_to_driver=False)
            except (ConnectionError, ValueError) as error:
                raise InvalidSetting(
                    f"Expected a Ray cluster at {address}, found none ({error}); start one with "
                    "`ray start --head`, or leave --address out for a local one."
                ) from None
            return
        self._ray.init(
            num_cpus=workers or available_cores(),
            include_dashboard=False,
            logging_level="ERROR",
            log_to_driver=False,
        )

    def run(
        self,
        work: Callable[[LabelledFeatures, Job], Outcome],
        features: LabelledFeatures,
        jobs: Sequence[Job],
    ) -> Iterator[tuple[int, Outcome]]:
        ray = self._ray
        shared = ray.put(features)  # workers of a machine read its arrays in place
        # Ray itself runs a task again whose worker died, and delivers one outcome.
        remote = ray.remote(num_cpus=1, max_retries=MOST_LOSSES)(work)
        places: dict[Any, int] = {}
        todo = iter(enumerate(jobs))
        try:
            while True:
                while len(places) < IN_FLIGHT * self.workers:
                    try:
                        place, job = next(todo)
                    except StopIteration:
                        break
                    places[remote.remote(shared, job)] = place
                if not places:
                    return
                (done, *_), _ = ray.wait(list(places), num_returns=1)
                yield places.pop(done), ray.get(done)
        except ray.exceptions.WorkerCrashedError:
            raise WorkerFailed(
                f"Expected workers to live, found one killed {MOST_LOSSES + 1} times on the same "
                "chunk; is there too little memory? Lower --workers."
            ) from None
        finally:
            for unfinished in places:
                ray.cancel(unfinished, force=True)

    def close(self) -> None:
        if self._mine:
            self._ray.shutdown()
