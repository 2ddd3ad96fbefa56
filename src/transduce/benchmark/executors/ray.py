"""The Ray executor: workers of a cluster, or of a local one; features are put there once."""

import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from transduce.benchmark.executors.executor import MOST_LOSSES, Answer, Job
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.errors import InvalidSetting, MissingExtra, WorkerFailed
from transduce.simplex.threads import available_cores

IN_FLIGHT = 3  # jobs for each worker, so that none waits for the next


class RayExecutor:
    """Workers of the cluster at `address`; of this machine, if it is None."""

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
        """Join the cluster at `address`, or start one of this machine's cores."""
        settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
        if address is None:
            settings |= {"num_cpus": workers or available_cores(), "include_dashboard": False}
        try:
            _knock(address)
            self._ray.init(address=address, **settings)
        except Exception as error:  # Ray has no type of its own for what goes wrong here
            where = "to start on this machine" if address is None else f"at {address}"
            raise InvalidSetting(
                f"Expected a Ray cluster {where}, found none ({error}); try again, start one with "
                "`ray start --head` and name its --address, or choose --executor joblib."
            ) from None

    def run(
        self,
        work: Callable[[LabeledFeatures, Job], Answer],
        features: LabeledFeatures,
        jobs: Sequence[Job],
    ) -> Iterator[tuple[int, Answer]]:
        """Yield (index of the job, its answer) as they come."""
        ray = self._ray
        shared = ray.put(features)  # workers of a machine read its arrays in place
        # Ray itself runs a task again whose worker died, and delivers one answer.
        remote = ray.remote(num_cpus=1, max_retries=MOST_LOSSES)(work)
        indices: dict[Any, int] = {}
        todo = iter(enumerate(jobs))
        try:
            while True:
                while len(indices) < IN_FLIGHT * self.workers:
                    try:
                        index, job = next(todo)
                    except StopIteration:
                        break
                    indices[remote.remote(shared, job)] = index
                if not indices:
                    return
                (done, *_), _ = ray.wait(list(indices), num_returns=1)
                yield indices.pop(done), ray.get(done)
        except ray.exceptions.WorkerCrashedError:
            raise WorkerFailed(
                f"Expected workers to live, found one killed {MOST_LOSSES + 1} times on the same "
                "chunk; is there too little memory? Lower --workers."
            ) from None
        finally:
            for unfinished in indices:
                ray.cancel(unfinished, force=True)

    def close(self) -> None:
        """Shut Ray down, if this executor started it."""
        if self._mine:
            self._ray.shutdown()


def _knock(address: str | None) -> None:
    """Fail fast if the Ray head is unreachable; ray.init retries for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if colon and "/" not in host:  # not `auto`, nor ray://...
        socket.create_connection((host, int(port)), timeout=10).close()
