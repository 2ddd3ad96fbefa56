"""Who does the work of a run: this process, or the workers of a Ray cluster.

On a cluster the chunks of a batch are tasks. A task reads its rows from the feature store, whose
folder must be reachable from every machine, and returns sums and the few stored entries of its
images; this process adds the sums up in the order of the chunks. Tasks depend on nothing but what
they are sent, so that one whose worker died is run again elsewhere, and the labels are those of a
single process to the bit.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from transduce.features.embedding import Progress, Resources, Target, Together, together_here
from transduce.labeling.inputs import Machine
from transduce.machine.cluster import Cluster, Reference
from transduce.simplex.passes import Passes, Work, in_threads
from transduce.simplex.threads import one_blas_thread, single_thread

Result = TypeVar("Result")


@dataclass(frozen=True)
class Executors:
    """Who embeds images, and who works on the chunks of large batches."""

    together: Together = together_here
    passes: Passes = in_threads


@contextmanager
def executors(machine: Machine) -> Iterator[Executors]:
    """Yield who works for a run; a cluster that was started for it ends with the block."""
    if not machine.ray:
        yield Executors()
        return
    from transduce.features.ray_executor import RayShards

    with Cluster(machine.resources.workers, machine.address) as cluster:
        gpus = 1.0 if machine.device.startswith("cuda") else 0.0
        yield Executors(_OnRay(RayShards(cluster, gpus=gpus)), RayPasses(cluster))


@dataclass(frozen=True)
class _OnRay:
    """Embeds on a cluster, where every worker has a core and decodes for itself."""

    shards: Together

    def __call__(
        self,
        targets: Sequence[Target],
        shards: Sequence[int],
        resources: Resources,
        progress: Progress,
    ) -> None:
        """Make shards of the stores; a single one is soon made here."""
        if len(shards) == 1:
            together_here(targets, shards, resources, progress)
        else:
            self.shards(targets, shards, replace(resources, workers=1), progress)


class RayPasses:
    """Passes over the chunks of a batch by the workers of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._shared: tuple[object, Reference] | None = None

    def __call__(
        self, work: Work[Result], batch: object, shared: object, chunks: Sequence[slice]
    ) -> Iterator[Result]:
        """`work(batch, shared, chunk)` of every chunk, in the order of the chunks."""
        if self._shared is None or self._shared[0] is not batch:
            self._shared = batch, self._cluster.share(batch)
        lanes = self._cluster.tasks(work_alone, work, self._shared[1], shared)
        for _, result in self._cluster.run(lanes, chunks, in_order=True):
            yield result


def work_alone(work: Work[Result], batch: object, shared: Any, chunk: slice) -> Result:  # noqa: ANN401
    """The work on a chunk in one thread: every core has a worker of its own."""
    with one_blas_thread(0), single_thread():
        return work(batch, shared, chunk)
