"""Solving on many machines: the chunks of a batch are tasks on a Ray cluster.

A task reads its rows from the feature store, whose folder must be reachable from every machine, and
returns sums and the few stored entries of its images; this process adds the sums up in the order of
the chunks. Tasks depend on nothing but what they are sent, so that one whose worker died is run
again elsewhere, and the labels are those of a single process to the bit.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from transduce.machine.cluster import Cluster, Reference
from transduce.simplex.passes import Work
from transduce.simplex.threads import one_blas_thread, single_thread

Result = TypeVar("Result")


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
