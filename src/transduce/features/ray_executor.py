"""Embedding on many machines: actors on a Ray cluster, each with its own encoders.

The actors take shards of the manifest and run the local code on them, so the store is the same
as a local run's. The images and the output folder must be reachable from every machine.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transduce.encoders.encoder import ImageEncoder
from transduce.errors import InvalidSetting
from transduce.features.embedding import (
    Progress,
    Resources,
    ShardExecutor,
    Target,
    embed_together,
)
from transduce.features.planning import Plan
from transduce.machine.cluster import Cluster, import_ray


class ShardEmbedder:
    """The actor: loads its encoders once, then embeds a shard at a time."""

    def __init__(self, targets: Sequence[Target], resources: Resources) -> None:
        self._targets = [(plan, load()) for plan, load in targets]
        self._resources = resources

    def __call__(self, shard: int) -> int:
        """Embed a shard; returns the number of its images."""
        counts: list[int] = []
        embed_together(self._targets, [shard], self._resources, counts.append)
        return sum(counts)


@dataclass(frozen=True)
class RayShards:
    """Makes shards of one or more stores on a cluster; `Together` of `features.embedding`."""

    cluster: Cluster
    actors: int = 0  # encoders at work; 0: one for each worker of the cluster, or for each GPU
    cpus: float = 1.0  # of each
    gpus: float = 0.0

    def __call__(
        self,
        targets: Sequence[Target],
        shards: Sequence[int],
        resources: Resources,
        progress: Progress,
    ) -> None:
        """Embed these shards with every encoder, and write them in every store."""
        actors = self.actors or (self.cluster.gpus if self.gpus else self.cluster.workers)
        lanes = self.cluster.actors(
            ShardEmbedder,
            list(targets),
            resources,
            count=max(1, min(actors, len(shards))),
            cpus=self.cpus,
            gpus=self.gpus,
        )
        for _, images in self.cluster.run(lanes, shards):
            progress(images)


def on_ray(
    load: Callable[[], ImageEncoder],
    *,
    actors: int = 1,
    cpus_per_actor: float = 1.0,
    gpus_per_actor: float = 0.0,
    address: str | None = None,
) -> ShardExecutor:
    """Return an executor for `embed`: joins the cluster at `address`, or starts a local one."""
    if actors < 1:
        raise InvalidSetting(f"Expected at least one actor, found {actors}.")
    import_ray("Embedding on Ray", address)

    def run(plan: Plan, resources: Resources, progress: Progress) -> None:
        with Cluster(math.ceil(actors * cpus_per_actor), address) as cluster:
            shards = RayShards(cluster, actors, cpus_per_actor, gpus_per_actor)
            shards([(plan, load)], plan.pending, resources, progress)

    return run
