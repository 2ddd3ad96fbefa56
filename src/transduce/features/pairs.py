"""Two feature stores of the same images in one pass over the files: `embed_pair`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from transduce.encoders.encoder import ImageEncoder
from transduce.features.embedding import (
    Progress,
    Resources,
    ShardExecutor,
    Together,
    Watch,
    execute,
    together_here,
)
from transduce.features.layout import MANIFEST, Settings
from transduce.features.planning import Plan, lock, prepare
from transduce.features.store import FeatureStore
from transduce.images.decoding import MOST_PIXELS
from transduce.images.entries import Listing
from transduce.images.manifest import Manifest

Load = Callable[[], ImageEncoder]


def embed_pair(
    listing: Listing,
    encoders: tuple[ImageEncoder, ImageEncoder],
    folders: tuple[Path, Path],
    *,
    batch_size: int,
    resources: Resources,
    watch: Watch,
    loads: tuple[Load, Load] | None = None,
    together: Together = together_here,
) -> tuple[FeatureStore, FeatureStore]:
    """Embed images with two encoders, each file read and decoded once.

    The stores are those of two calls of `embed`; one that was stopped is finished. `watch` is
    called with a plan of all shards that are missing in either. `together` makes the shards, with
    the encoders that `loads` return where it works; by default here, with those given.
    """
    loads = loads or (lambda: encoders[0], lambda: encoders[1])
    settings = Settings(batch_size, "exact", MOST_PIXELS)
    with lock(folders[0]), lock(folders[1]):
        first, second = (
            prepare(listing, folder, encoder.identity, settings)
            for folder, encoder in zip(folders, encoders, strict=True)
        )
        both = [shard for shard in first.pending if shard in set(second.pending)]
        with watch(_joined(first, second)) as progress:
            if both:
                targets = [(first, loads[0]), (second, loads[1])]
                together(targets, both, resources, progress)
            metas = [
                execute(plan, _rest(load, both, together), resources, progress)
                for plan, load in zip((first, second), loads, strict=True)
            ]
    return FeatureStore(folders[0], metas[0]), FeatureStore(folders[1], metas[1])


def _joined(first: Plan, second: Plan) -> Plan:
    """Return the plan of what is missing in either store, for the progress bar."""
    manifest = Manifest(second.folder / MANIFEST)
    more = [shard for shard in second.pending if shard not in first.pending]
    return replace(
        first,
        pending=(*first.pending, *more),
        images_pending=first.images_pending + sum(manifest.rows_of(shard) for shard in more),
    )


def _rest(load: Load, done: list[int], together: Together) -> ShardExecutor:
    """Return an executor of the shards that were not made for both stores."""

    def run(plan: Plan, resources: Resources, progress: Progress) -> None:
        missing = [shard for shard in plan.pending if shard not in done]
        if missing:
            together([(plan, load)], missing, resources, progress)

    return run
