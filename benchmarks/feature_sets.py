"""Real CLIP features, split by class into images to learn from, to tune on and to test on.

The folder that holds them is named by the environment variable TRANSDUCE_REFERENCE.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int

from transduce.task import Space, Task

SETS = ("whurs19_RN50", "whurs19_ViT-B-32", "caltech101_62_ViT-B-32")
MOST_SHOTS = 16
PRESENT, QUERIES, TUNING_QUERIES = 5, 75, 35


@dataclass(frozen=True)
class Episode:
    """A task's rows among the features: the truth travels beside it."""

    support: Int[np.ndarray, " shot"]
    query: Int[np.ndarray, " query"]


@dataclass(frozen=True)
class FeatureSet:
    """`pools[name][k]` are the images of class k: name is support, tuning or test.

    Every class keeps at least 16 images for support. What remains goes, one to two, to tuning
    and to test; a query's classes are drawn among those with a fair share (7, 15) left in both.
    """

    name: str
    images: Float32[np.ndarray, "image feature"]
    labels: Int[np.ndarray, " image"]
    classes: Float32[np.ndarray, "class feature"]
    pools: dict[str, list[Int[np.ndarray, " member"]]]

    @property
    def eligible(self) -> Int[np.ndarray, " class"]:
        enough = [
            len(tuning) * PRESENT >= TUNING_QUERIES and len(test) * PRESENT >= QUERIES
            for tuning, test in zip(self.pools["tuning"], self.pools["test"], strict=True)
        ]
        return np.flatnonzero(enough)

    def episode(self, pool: str, shots: int, queries: int, seed: list[int]) -> Episode:
        """Shots of every class, and queries from the pooled images of five of them."""
        random = np.random.default_rng(seed)
        present = random.choice(self.eligible, PRESENT, replace=False)
        candidates = np.concatenate([self.pools[pool][k] for k in present])
        support = [random.choice(rows, shots, replace=False) for rows in self.pools["support"]]
        return Episode(np.concatenate(support), random.choice(candidates, queries, replace=False))

    def task(self, episode: Episode, space: Space, *, with_support: bool) -> Task:
        return Task.from_embeddings(
            self.images[episode.query],
            self.classes,
            support=self.images[episode.support] if with_support else None,
            support_labels=self.labels[episode.support] if with_support else None,
            space=space,
        )


def load(name: str, seed: int) -> FeatureSet:
    folder = os.environ.get("TRANSDUCE_REFERENCE")
    if not folder:
        raise SystemExit(
            "Expected the folder of the reference features in TRANSDUCE_REFERENCE, found none."
        )
    with np.load(Path(folder) / "data" / f"{name}.npz") as stored:
        text = _unit(stored["text_features"].astype(np.float64))
        if "labels" in stored:
            images, labels = stored["image_features"], stored["labels"]
            text = _unit(text.mean(0))  # over the prompts
        else:
            images = np.concatenate([stored["test_features"], stored["val_features"]])
            labels = np.concatenate([stored["test_labels"], stored["val_labels"]])
    pools = _pools(labels, len(text), np.random.default_rng([seed, len(labels)]))
    unit = _unit(images.astype(np.float64)).astype(np.float32)
    return FeatureSet(name, unit, labels, text.astype(np.float32), pools)


def _pools(
    labels: Int[np.ndarray, " image"], n_classes: int, random: np.random.Generator
) -> dict[str, list[Int[np.ndarray, " member"]]]:
    pools: dict[str, list[Int[np.ndarray, " member"]]] = {"support": [], "tuning": [], "test": []}
    for k in range(n_classes):
        members = random.permutation(np.flatnonzero(labels == k))
        first = max(MOST_SHOTS, int(0.4 * len(members)))
        second = first + (len(members) - first) // 3
        pools["support"].append(members[:first])
        pools["tuning"].append(members[first:second])
        pools["test"].append(members[second:])
    return pools


def _unit(rows: np.ndarray) -> np.ndarray:
    unit: np.ndarray = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return unit
