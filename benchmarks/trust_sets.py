"""The labels that `benchmarks.trust` doubts and audits: real features, four regimes."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int

from transduce.benchmark.episodes.regimes import PerClassProtocol, RegimeProtocol, SkewedProtocol
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.benchmark.reference import read_reference
from transduce.labeling.trust.doubt import doubts
from transduce.methods.anchored import Anchored
from transduce.task import Task

SETS = {
    "WHU-RS19 RN50": ("reference:whurs19", "RN50"),
    "WHU-RS19 ViT-B/32": ("reference:whurs19", "ViT-B-32"),
    "WHU-RS19 GeoRSCLIP": ("reference:whurs19", "GeoRSCLIP-ViT-B-32"),
    "WHU-RS19 SkyCLIP": ("reference:whurs19", "SkyCLIP-ViT-B-32"),
    "WHU-RS19 RemoteCLIP": ("reference:whurs19", "RemoteCLIP-ViT-L-14"),
    "Caltech-62": ("reference:caltech101_62", "ViT-B-32"),
    "Caltech-62 of 562 names": ("reference:caltech101_62+distractors", "ViT-B-32"),
    "ImageNet-400": ("reference:imagenet400", "ViT-B-32"),
    "Cars-98": ("reference:cars98", "ViT-B-32"),
}
BATCHES = {"few classes": 100, "most classes": 15, "long tail": 30, "whole": 1}
OWN_TEMPERATURE = 100.0  # CLIP's own


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One batch: what the method said of each image, and whether its label is wrong."""

    probabilities: Float32[np.ndarray, "image class"]
    zero_shot: Float32[np.ndarray, "image class"]
    label: Int[np.ndarray, " image"]
    truth: Int[np.ndarray, " image"]
    doubt: Float32[np.ndarray, " image"]
    evidence: Mapping[str, Float32[np.ndarray, " image"]] | None = None
    estimates: Mapping[str, float] | None = None

    @property
    def wrong(self) -> Bool[np.ndarray, " image"]:
        """Whether each label is wrong."""
        return self.label != self.truth


def features_of(name: str) -> LabeledFeatures:
    """The features of a set, from the folder that TRANSDUCE_REFERENCE names."""
    return read_reference(Path(os.environ["TRANSDUCE_REFERENCE"]), *SETS[name])


def batches(
    features: LabeledFeatures, regime: str, *, seed: int = 0, most: int | None = None
) -> Iterator[Batch]:
    """The labeled batches of a regime, or the first `most` of them."""
    split, texts = features.splits["all"], features.class_embeddings.astype(np.float32)
    pools = [np.flatnonzero(split.labels == k) for k in range(len(texts))]
    present = sum(len(pool) > 0 for pool in pools)
    protocols = {
        "few classes": RegimeProtocol(queries=200, fewest=3, most=10),
        "most classes": RegimeProtocol(
            queries=1000, fewest=int(0.6 * present), most=int(0.9 * present)
        ),
        "long tail": SkewedProtocol(queries=1000, concentration=0.1),
        "whole": PerClassProtocol(),
    }
    for number in range(BATCHES[regime])[:most]:
        rows = protocols[regime].draw(np.random.default_rng([seed, number]), pools)
        yield labeled(split.embeddings[rows], split.labels[rows], texts)


def labeled(
    images: Float32[np.ndarray, "image feature"],
    truth: Int[np.ndarray, " image"],
    texts: Float32[np.ndarray, "class feature"],
) -> Batch:
    """The answer of the default method, with its doubts."""
    task = Task.from_embeddings(images, texts, space="embedding", temperature=OWN_TEMPERATURE)
    prediction = Anchored().predict(task)
    rows, labels = prediction.probabilities, prediction.labels
    evidence, estimates = prediction.evidence, prediction.trace.estimates
    doubt = doubts(labels, first_two(rows), evidence, estimates)
    return Batch(rows, task.zero_shot, labels, truth, doubt, evidence, estimates)


def first_two(rows: Float32[np.ndarray, "image class"]) -> Float32[np.ndarray, "image two"]:
    """The two largest probabilities of each image."""
    return np.sort(np.partition(rows, -2, axis=1)[:, -2:], axis=1)[:, ::-1]
