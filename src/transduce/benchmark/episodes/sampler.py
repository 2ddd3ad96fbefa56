"""Draw episodes: number i of a protocol on a dataset, the same on any machine, in any order.

The random numbers of an episode come from (seed, dataset, protocol, i) alone. So two methods, two
spaces and two encoders are compared on the same images, and a shard of a run is a slice of it.
"""

import hashlib
import json
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Int64

from transduce.benchmark.episodes.episode_protocol import EpisodeProtocol
from transduce.benchmark.episodes.protocol import protocol_to_json
from transduce.benchmark.episodes.rows import PoolTooSmall, Rows
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.errors import InvalidSetting
from transduce.task import Space, Task


@dataclass(frozen=True, eq=False)
class Episode:
    """A task and, beside it, the classes of its queries, which no method sees."""

    task: Task
    labels: Int[np.ndarray, " query"]


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows of an episode: of the query split, and of the shots of every class in order."""

    query: Int64[np.ndarray, " query"]
    support: Int64[np.ndarray, " shot"]


def sample(
    features: LabeledFeatures,
    protocol: EpisodeProtocol,
    index: int,
    *,
    seed: int,
    space: Space = "probability",
    temperature: float = 30.0,
    query_split: str = "test",
    support_split: str = "train",
) -> Episode:
    """Return episode number `index`. If both splits are one, no image is both shot and query."""
    drawn = draw_rows(
        features, protocol, index, seed=seed, query_split=query_split, support_split=support_split
    )
    query = features.split(query_split)
    support = features.split(support_split) if len(drawn.support) else None
    task = Task.from_embeddings(
        query.embeddings[drawn.query],
        features.class_embeddings,
        support=None if support is None else support.embeddings[drawn.support],
        support_labels=None if support is None else support.labels[drawn.support],
        temperature=temperature,
        space=space,
        partial_support=protocol.share_with_shots < 1,
    )
    return Episode(task, query.labels[drawn.query])


def draw_rows(
    features: LabeledFeatures,
    protocol: EpisodeProtocol,
    index: int,
    *,
    seed: int,
    query_split: str = "test",
    support_split: str = "train",
) -> Draw:
    """Return the rows that episode number `index` is made of."""
    if index < 0:
        raise InvalidSetting(f"Expected an episode number from 0, found {index}.")
    random = episode_generator(features.name, protocol, index, seed=seed)
    pools = features.rows_by_class(query_split)
    support = np.empty(0, np.int64)
    if protocol.shots:
        shots = _shots(random, features, protocol, support_split)
        support = np.concatenate(shots)
        if support_split == query_split:
            pools = [np.setdiff1d(*both) for both in zip(pools, shots, strict=True)]
    where = f"the {query_split} split of {features.name}"
    protocol.check(np.array([len(pool) for pool in pools]), where)
    try:
        return Draw(random.permutation(protocol.draw(random, pools)), support)
    except PoolTooSmall as error:
        raise InvalidSetting(
            f"Expected {protocol.name} episodes of {protocol.queries} queries from {where}, found "
            f"{error}; lower queries."
        ) from None


def episode_generator(
    dataset: str, protocol: EpisodeProtocol, index: int, *, seed: int
) -> np.random.Generator:
    """Return the random numbers of one episode."""
    described = json.dumps([seed, dataset, protocol_to_json(protocol)], sort_keys=True)
    entropy = int.from_bytes(hashlib.sha256(described.encode()).digest())
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(index,)))


def _shots(
    random: np.random.Generator, features: LabeledFeatures, protocol: EpisodeProtocol, split: str
) -> list[Rows]:
    """Return the rows of the shots of each class, none for a class without."""
    shots, pools = protocol.shots, features.rows_by_class(split)
    if protocol.share_with_shots < 1:
        enough = [k for k, pool in enumerate(pools) if len(pool) >= shots]
        wanted = max(1, round(protocol.share_with_shots * len(enough)))
        if enough:
            chosen = set(random.choice(enough, wanted, replace=False).tolist())
            empty = np.empty(0, np.int64)
            return [
                random.choice(pool, shots, replace=False) if k in chosen else empty
                for k, pool in enumerate(pools)
            ]
    few = [k for k, pool in enumerate(pools) if len(pool) < shots]
    if few:
        least = min(few, key=lambda k: len(pools[k]))
        most = len(pools[least])
        raise InvalidSetting(
            f"Expected {shots} shots of each of {features.n_classes} classes in the {split} split "
            f"of {features.name}, found fewer of {len(few)}, such as {most} of "
            f"{features.classes[least]!r}; "
            + (f"lower shots to {most}." if most else "choose another split.")
        )
    return [random.choice(pool, shots, replace=False) for pool in pools]
