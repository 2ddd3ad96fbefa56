"""Embedding on many machines: actors on a Ray cluster, each with its own encoder.

The actors take shards of the manifest and run the local code on them, so the store is the same
as a local run's. The images and the output folder must be reachable from every machine.
"""

import math
from collections.abc import Callable

from transduce.encoders.encoder import Encoder
from transduce.errors import InvalidSetting
from transduce.features.embedding import Progress, Resources, ShardExecutor, embed_shards
from transduce.features.planning import Plan
from transduce.machine.cluster import Cluster, import_ray


class ShardEmbedder:
    """The actor: loads the encoder once, then embeds a shard at a time."""

    def __init__(self, load: Callable[[], Encoder], plan: Plan, resources: Resources) -> None:
        self._encoder = load()
        self._plan = plan
        self._resources = resources

    def __call__(self, shard: int) -> int:
        """Embed a shard; returns the number of its images."""
        counts: list[int] = []
        embed_shards(self._plan, [shard], self._encoder, self._resources, counts.append)
        return sum(counts)


def on_ray(
    load: Callable[[], Encoder],
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
            lanes = cluster.actors(
                ShardEmbedder,
                load,
                plan,
                resources,
                count=min(actors, len(plan.pending)),
                cpus=cpus_per_actor,
                gpus=gpus_per_actor,
            )
            for _, images in cluster.run(lanes, plan.pending):
                progress(images)

    return run
