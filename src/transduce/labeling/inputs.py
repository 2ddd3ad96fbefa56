"""What a run starts from: an encoder, the embeddings of the classes, a store of features."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from transduce.encoders import load_encoder
from transduce.encoders.encoder import Encoder
from transduce.encoders.precomputed import TEXTS
from transduce.encoders.prompts import embed_classes
from transduce.errors import NoImages
from transduce.features import embedding
from transduce.features.embedding import Resources
from transduce.features.planning import Plan, check_same_encoder
from transduce.features.store import FeatureStore
from transduce.images.entries import Listing
from transduce.images.sources import find_images
from transduce.labeling.settings import LabelSettings
from transduce.labeling.shots import Shots

FROM_STORE = ""  # as the encoder: the one that made the features
Progress = Callable[[int], None]


def _silent(title: str, total: int) -> AbstractContextManager[Progress]:
    return nullcontext(lambda images: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who is told of the progress; by default nobody."""

    say: Callable[[str], None] = lambda line: None
    bar: Callable[[str, int], AbstractContextManager[Progress]] = _silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a run may use; it changes the speed, never the labels."""

    device: str = "cpu"
    batch_size: int = 32  # images per forward pass
    resources: Resources = field(default_factory=Resources)


def encoder_of(settings: LabelSettings, machine: Machine) -> Encoder:
    return load_encoder(
        encoder_name(settings),
        offline=settings.offline,
        device=machine.device,
        batch_size=machine.batch_size,
    )


def encoder_name(settings: LabelSettings) -> str:
    """As asked; with a store of features, by default the encoder that made it."""
    if settings.encoder != FROM_STORE or not settings.features:
        return settings.encoder or "default"
    store = settings.path(settings.features)
    if (store / TEXTS).is_file():
        return f"precomputed:{store}"
    return FeatureStore.open(store).identity.encoder


def class_embeddings(
    encoder: Encoder, settings: LabelSettings
) -> Float32[np.ndarray, "class feature"]:
    return embed_classes(encoder, settings.names, settings.templates)


def given_store(settings: LabelSettings, encoder: Encoder) -> FeatureStore:
    """The store of --features, refused if another encoder made it."""
    store = FeatureStore.open(settings.path(settings.features))
    check_same_encoder(
        store.identity, encoder.identity, f"the features in {store.folder}", "this run"
    )
    if not len(store):
        raise NoImages(f"Expected features of images in {store.folder}, found none; embed again.")
    return store


def embed(
    found: Listing, folder: Path, encoder: Encoder, machine: Machine, listener: Listener, title: str
) -> FeatureStore:
    """The images of `found` in a store at `folder`, going on where a stopped run left off."""

    def watch(plan: Plan) -> AbstractContextManager[Progress]:
        if plan.resumed and plan.pending:
            done = plan.images - plan.images_pending
            listener.say(f"Going on after {done:,} of {plan.images:,} images")
        return listener.bar(title, plan.images_pending)

    store = embedding.embed(
        found,
        encoder,
        out=folder,
        batch_size=machine.batch_size,
        resources=machine.resources,
        watch=watch,
    )
    if not len(store):
        counts = Counter(skip.reason for skip in store.skipped())
        reasons = ", ".join(f"{count:,} {why}" for why, count in counts.most_common())
        raise NoImages(
            f"Expected at least one readable image in {found.source}, found none: {reasons}."
        )
    return store


def support_shots(
    settings: LabelSettings, folder: Path, encoder: Encoder, machine: Machine, listener: Listener
) -> Shots:
    """The shots of --support, embedded beside the images; none without it."""
    if not settings.support:
        return Shots.none(encoder.identity.dimension)
    found = find_images(str(settings.path(settings.support)))
    store = embed(found, folder, encoder, machine, listener, "Support  ")
    return Shots.from_store(store, settings.names)
