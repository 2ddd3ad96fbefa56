"""A Ray cluster: joined or started here, with a bounded number of jobs in flight.

The only module of the library that imports Ray (`pip install "transduce[ray]"`). Embedding
(`features.ray_executor`), solving (`labeling.executors`) and the benchmark
(`benchmark.executors.ray`) submit their work here.
"""

import os
import secrets
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from transduce.errors import InvalidSetting, MissingExtra, WorkerFailed
from transduce.machine import network
from transduce.machine.processes import end_with_us
from transduce.simplex.threads import available_cores

IN_FLIGHT = 3  # jobs for each worker, so that none waits for the next
MOST_LOSSES = 3  # of workers in a row, on the same job
KNOCK_SECONDS = 10.0

Job = TypeVar("Job")
Reference = Any  # Ray's ObjectRef: Ray is an extra, and untyped
Lane = Callable[[Job], Reference]  # hands a job to a worker


def import_ray(what: str, address: str | None) -> Any:  # noqa: ANN401 - a module
    """Return Ray, or say which extra `what` needs; `network` switches its statistics off.

    Without an `address` there will be a cluster of our own: it serves those who know its secret.
    """
    if not (address or os.environ.get("RAY_ADDRESS")) and "ray" not in sys.modules:
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # Ray reads it when it is imported
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError:
        raise MissingExtra(what, "ray") from None
    return ray


class Cluster:
    """A connection to Ray, closed by `close` or at the end of a `with` block.

    A Ray that is initialized already is used and left running. Usage statistics are switched off.

    Parameters
    ----------
    workers : int, default 0
        How many jobs run at a time; 0 is one per core of the cluster.
    address : str, optional
        `HOST:PORT` of a running cluster, or `auto`. By default $RAY_ADDRESS, or else a cluster of
        this machine's cores, which ends with this object.
    """

    def __init__(self, workers: int = 0, address: str | None = None) -> None:
        if workers < 0:
            raise InvalidSetting(f"Expected at least 0 workers (0: all cores), found {workers}.")
        self.ray = import_ray("The ray executor", address)
        self._owned = not self.ray.is_initialized()
        if self._owned:
            self._start(workers, address or os.environ.get("RAY_ADDRESS"))
        self.workers = workers or max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @property
    def gpus(self) -> int:
        """The number of GPUs of the cluster."""
        return int(self.ray.cluster_resources().get("GPU", 0))

    def _start(self, workers: int, address: str | None) -> None:
        settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
        if address is None:
            settings |= {"num_cpus": workers or available_cores(), "include_dashboard": False}
            self._keep_to_this_machine()
            end_with_us()
        try:
            _check_reachable(address)
            started = self.ray.init(address=address, **settings)
            if address is None:
                end_with_us(str(started.address_info["session_dir"]))
        except Exception as error:  # Ray has no type of its own for what goes wrong here
            where = "to start on this machine" if address is None else f"at {address}"
            raise InvalidSetting(
                f"Expected a Ray cluster {where}, found none ({error}); try again, start one with "
                "`ray start --head` and name its --address, or choose another --executor."
            ) from None

    def _keep_to_this_machine(self) -> None:
        """Let a cluster of our own listen on 127.0.0.1 alone.

        On Linux Ray listens on every interface. Where it is not to run on several machines, as on
        macOS, it keeps to the loopback address; this is the switch for that.
        """
        network.allow_loopback()
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # for the processes it starts
        self.ray._private.ray_constants.ENABLE_RAY_CLUSTER = False

    def tasks(self, work: Callable[..., Any], *shared: object) -> list[Lane[Any]]:
        """Return lanes that call `work(*shared, job)` on any worker.

        `shared` is sent to each machine once; what `share` returned was sent before. A job whose
        worker died is run again.
        """
        kept = [self.share(value) for value in shared]
        remote = self.ray.remote(num_cpus=1, max_retries=MOST_LOSSES)(work)
        return [lambda job: remote.remote(*kept, job)] * (IN_FLIGHT * self.workers)

    def share(self, value: object) -> Reference:
        """Return a reference to a value for several calls of `tasks`: it is sent once for all."""
        return value if isinstance(value, self.ray.ObjectRef) else self.ray.put(value)

    def actors(
        self, kind: type, *arguments: object, count: int, cpus: float = 1.0, gpus: float = 0.0
    ) -> list[Lane[Any]]:
        """Return lanes to `count` objects `kind(*arguments)`, each called with a job at a time.

        An actor that died is made again, and its job with it.
        """
        remote = self.ray.remote(
            num_cpus=cpus, num_gpus=gpus, max_restarts=MOST_LOSSES, max_task_retries=MOST_LOSSES
        )(kind)
        made = [remote.remote(*arguments) for _ in range(count)]
        # Two for each: the next job is there when the first is done.
        return [actor.__call__.remote for actor in made] * 2

    def run(
        self, lanes: Sequence[Lane[Job]], jobs: Sequence[Job], *, in_order: bool = False
    ) -> Iterator[tuple[int, Any]]:
        """Yield (index of the job, its outcome), as they are completed or in the order of the jobs.

        At most one job is in flight for each lane.
        """
        free = deque(lanes)
        flying: dict[Reference, tuple[int, Lane[Job]]] = {}
        todo = deque(enumerate(jobs))
        waiting: dict[int, Any] = {}
        following = 0
        try:
            while todo or flying:
                while todo and free:
                    index, job = todo.popleft()
                    lane = free.popleft()
                    flying[lane(job)] = (index, lane)
                (done, *_), _ = self.ray.wait(list(flying), num_returns=1)
                index, lane = flying.pop(done)
                free.append(lane)
                waiting[index] = self.ray.get(done)
                while waiting and (not in_order or following in waiting):
                    index = following if in_order else next(iter(waiting))
                    yield index, waiting.pop(index)
                    following += 1
        except (self.ray.exceptions.WorkerCrashedError, self.ray.exceptions.ActorDiedError):
            raise WorkerFailed(
                f"Expected workers to live, found one killed {MOST_LOSSES + 1} times on the same "
                "job; is there too little memory? Use fewer workers."
            ) from None
        finally:
            for unfinished in flying:
                self._cancel(unfinished)

    def _cancel(self, unfinished: Reference) -> None:
        try:
            self.ray.cancel(unfinished, force=True)
        except ValueError:  # a job of an actor cannot be forced
            self.ray.cancel(unfinished)

    def close(self) -> None:
        """Leave the cluster, or end it if it was started here."""
        if self._owned:
            self.ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _check_reachable(address: str | None) -> None:
    """Raise OSError if nobody listens at HOST:PORT; ray.init itself retries for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if colon and "/" not in host:  # not `auto`, nor ray://...
        socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()
