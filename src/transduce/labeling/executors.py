"""Who does the work of a run: this process, or the workers of a Ray cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from transduce.features.embedding import Progress, Resources, Target, Together, together_here
from transduce.labeling.inputs import Machine
from transduce.simplex.passes import Passes, in_threads


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
    from transduce.labeling.ray_passes import RayPasses
    from transduce.machine.cluster import Cluster

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
