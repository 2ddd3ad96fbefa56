"""`Embedder`: embeds the images of a labeling run into feature stores."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from transduce.encoders import load_encoder
from transduce.encoders.encoder import Encoder, ImageEncoder
from transduce.errors import NoImages
from transduce.features import embedding
from transduce.features.embedding import (
    Carried,
    Progress,
    Resources,
    Together,
    Watch,
    together_here,
)
from transduce.features.layout import Skip
from transduce.features.pairs import embed_pair
from transduce.features.planning import Plan
from transduce.features.store import FeatureStore
from transduce.images.entries import Listing
from transduce.labeling.inputs import Listener, Machine
from transduce.machine.network import is_offline


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """Embeds images into feature stores, with the encoder of the names and that of the view."""

    encoder: Encoder
    view_encoder: ImageEncoder | None = None
    machine: Machine
    listener: Listener
    sent: tuple[bool, bool] = (True, True)  # whether other processes get them as they are
    together: Together = together_here  # who makes the shards

    def embed(self, images: Listing, folder: Path, title: str) -> FeatureStore:
        """Return the store of `images` at `folder`, resuming one that was stopped."""
        store = embedding.embed(
            images,
            self.encoder,
            out=folder,
            batch_size=self.machine.batch_size,
            resources=self.machine.resources,
            executor=self._executor,
            watch=self._watch(title),
        )
        return _with_rows(store, images)

    def _executor(self, plan: Plan, resources: Resources, progress: Progress) -> None:
        self.together([(plan, self._carried(self.encoder, 0))], plan.pending, resources, progress)

    def _carried(self, encoder: ImageEncoder, number: int) -> Carried:
        machine = self.machine
        if self.sent[number]:
            return Carried(encoder)
        return Carried(
            encoder,
            partial(
                load_encoder,
                encoder.identity.encoder,
                offline=is_offline(),
                device=machine.device,
                batch_size=machine.batch_size,
            ),
        )

    def embed_both(
        self, images: Listing, folders: tuple[Path, Path], title: str
    ) -> tuple[FeatureStore, FeatureStore]:
        """Return the stores of both encoders, made in one pass over the files."""
        assert self.view_encoder is not None
        stores = embed_pair(
            images,
            (self.encoder, self.view_encoder),
            folders,
            batch_size=self.machine.batch_size,
            resources=self.machine.resources,
            watch=self._watch(title),
            loads=(self._carried(self.encoder, 0), self._carried(self.view_encoder, 1)),
            together=self.together,
        )
        return _with_rows(stores[0], images), stores[1]

    def _watch(self, title: str) -> Watch:
        def watch(plan: Plan) -> AbstractContextManager[Progress]:
            if plan.resumed and plan.pending:
                done = plan.images - plan.images_pending
                self.listener.say(f"Going on after {done:,} of {plan.images:,} images")
            return self.listener.bar(title, plan.images_pending)

        return watch


def skip_reasons(skipped: Sequence[Skip]) -> str:
    """Return the reasons of skips with their counts, such as "2 truncated, 1 empty"."""
    counts = Counter(
        f"{skip.reason} ({skip.detail})" if "pip install" in skip.detail else skip.reason
        for skip in skipped
    )
    return ", ".join(f"{count:,} {why}" for why, count in counts.most_common())


def _with_rows(store: FeatureStore, images: Listing) -> FeatureStore:
    """Return the store, refused if no image could be read."""
    if not len(store):
        reasons = skip_reasons(store.skipped())
        raise NoImages(
            f"Expected at least one readable image in {images.source}, found none: {reasons}."
        )
    return store
