"""Embedding on many machines: a Ray Data pool of actors, each with its own encoder.

The actors take shards of our manifest and run the local code on them, so the store is the same
as a local run's. The pictures and the output folder must be reachable from every machine.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from transduce.encoders.encoder import Encoder
from transduce.errors import InvalidSetting, MissingExtra
from transduce.features.extraction import Executor, Progress, Resources, embed_shards
from transduce.features.planning import Plan

Column = dict[str, np.ndarray[Any, np.dtype[np.int64]]]


class ShardEmbedder:
    """The actor: loads the encoder once, then embeds a shard at a time."""

    def __init__(self, load: Callable[[], Encoder], plan: Plan, resources: Resources) -> None:
        self._encoder = load()
        self._plan = plan
        self._resources = resources

    def __call__(self, batch: Column) -> Column:
        images: list[int] = []
        for shard in batch["shard"]:
            settled: list[int] = []
            embed_shards(self._plan, [int(shard)], self._encoder, self._resources, settled.append)
            images.append(sum(settled))
        return {"shard": batch["shard"], "images": np.array(images, np.int64)}


def on_ray(
    load: Callable[[], Encoder],
    *,
    actors: int = 1,
    cpus_per_actor: float = 1.0,
    gpus_per_actor: float = 0.0,
) -> Executor:
    """An executor for `execute`; joins the cluster of RAY_ADDRESS, or starts a local one."""
    if actors < 1:
        raise InvalidSetting(f"Expected at least one actor, found {actors}.")
    try:
        import ray.data
    except ImportError:
        raise MissingExtra("Embedding on Ray", "ray") from None

    def run(plan: Plan, resources: Resources, progress: Progress) -> None:
        if not ray.is_initialized():
            ray.init(logging_level=logging.WARNING)
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        ray.data.DataContext.get_current().enable_progress_bars = False  # we have our own
        shards = ray.data.from_items(
            [{"shard": shard} for shard in plan.pending], override_num_blocks=len(plan.pending)
        )
        made = shards.map_batches(
            ShardEmbedder,
            fn_constructor_args=(load, plan, resources),
            batch_size=1,  # a shard is the unit of work: whoever is free takes the next
            compute=ray.data.ActorPoolStrategy(size=min(actors, len(plan.pending))),
            num_cpus=cpus_per_actor,
            num_gpus=gpus_per_actor,
        )
        for done in made.iter_batches(batch_size=1):
            progress(int(done["images"].sum()))

    return run
