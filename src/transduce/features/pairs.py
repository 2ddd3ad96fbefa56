"""Two feature stores of the same images in one pass over the files: `embed_pair`."""

from dataclasses import replace
from pathlib import Path

from transduce.encoders.encoder import ImageEncoder
from transduce.features.embedding import (
    Progress,
    Resources,
    ShardExecutor,
    Watch,
    embed_shards,
    embed_together,
    execute,
)
from transduce.features.layout import MANIFEST, Settings
from transduce.features.planning import Plan, lock, prepare
from transduce.features.store import FeatureStore
from transduce.images.decoding import MOST_PIXELS
from transduce.images.entries import Listing
from transduce.images.manifest import Manifest


def embed_pair(
    listing: Listing,
    encoders: tuple[ImageEncoder, ImageEncoder],
    folders: tuple[Path, Path],
    *,
    batch_size: int,
    resources: Resources,
    watch: Watch,
) -> tuple[FeatureStore, FeatureStore]:
    """Embed images with two encoders, each file read and decoded once.

    The stores are those of two calls of `embed`; one that was stopped is finished. `watch` is
    called with a plan of all shards that are missing in either.
    """
    settings = Settings(batch_size, "exact", MOST_PIXELS)
    with lock(folders[0]), lock(folders[1]):
        first, second = (
            prepare(listing, folder, encoder.identity, settings)
            for folder, encoder in zip(folders, encoders, strict=True)
        )
        both = [shard for shard in first.pending if shard in set(second.pending)]
        with watch(_joined(first, second)) as progress:
            if both:
                targets = [(first, encoders[0]), (second, encoders[1])]
                embed_together(targets, both, resources, progress)
            metas = [
                execute(plan, _rest(encoder, both), resources, progress)
                for plan, encoder in zip((first, second), encoders, strict=True)
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


def _rest(encoder: ImageEncoder, done: list[int]) -> ShardExecutor:
    """Return an executor of the shards that were not made for both stores."""

    def run(plan: Plan, resources: Resources, progress: Progress) -> None:
        missing = [shard for shard in plan.pending if shard not in done]
        if missing:
            embed_shards(plan, missing, encoder, resources, progress)

    return run
