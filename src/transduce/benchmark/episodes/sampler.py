"""Drawing episodes: number i of a protocol on a dataset, the same on any machine, in any order.

The random numbers of an episode come from (seed, dataset, protocol, i) alone. So two methods, two
spaces and two encoders are compared on the same images, and a shard of a run is a slice of it.
"""

import hashlib
import json
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from transduce.benchmark.episodes.episode import Episode
from transduce.benchmark.episodes.feasibility import PoolTooSmall, check_fits, numbers_that_fit
from transduce.benchmark.episodes.protocol import (
    AllClassesProtocol,
    BalancedProtocol,
    DirichletProtocol,
    FewShotProtocol,
    Protocol,
    ZeroShotProtocol,
    protocol_to_json,
)
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.errors import InvalidSetting
from transduce.task import Space, Task

MOST_REDRAWS = 10_000

Rows = Int64[np.ndarray, " _row"]
Pools = list[Rows]  # of each class, the rows that may be drawn


@dataclass(frozen=True, eq=False)
class Draw:
    """The rows of an episode: of the query split, and shots of every class in order."""

    query: Int64[np.ndarray, " query"]
    support: Int64[np.ndarray, " shot"]


def sample(
    features: LabeledFeatures,
    protocol: Protocol,
    index: int,
    *,
    seed: int,
    space: Space = "probability",
    temperature: float = 30.0,
    query_split: str = "test",
    support_split: str = "train",
) -> Episode:
    """Episode number `index`. If both splits are one, no image is both shot and query."""
    drawn = draw(
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
    )
    return Episode(task, query.labels[drawn.query])


def draw(
    features: LabeledFeatures,
    protocol: Protocol,
    index: int,
    *,
    seed: int,
    query_split: str = "test",
    support_split: str = "train",
) -> Draw:
    """Which rows episode number `index` is made of."""
    if index < 0:
        raise InvalidSetting(f"Expected an episode number from 0, found {index}.")
    random = generator(features.name, protocol, index, seed=seed)
    pools = features.rows_by_class(query_split)
    support = np.empty(0, np.int64)
    if protocol.shots:
        shots = _shots(random, features, protocol.shots, support_split)
        support = np.concatenate(shots)
        if support_split == query_split:
            pools = [np.setdiff1d(*both) for both in zip(pools, shots, strict=True)]
    where = f"the {query_split} split of {features.name}"
    counts = np.array([len(pool) for pool in pools])
    check_fits(protocol, counts, where)
    present = _number_present(random, protocol, counts)
    for _ in range(MOST_REDRAWS):  # the number of classes stays, so that it remains uniform
        try:
            query = _query(random, protocol, pools, present)
            return Draw(random.permutation(query), support)
        except PoolTooSmall:
            continue
    raise InvalidSetting(
        f"Expected {protocol.name} episodes of {protocol.queries} queries from {where}, found "
        f"classes too small in each of {MOST_REDRAWS:,} draws; lower queries."
    )


def generator(dataset: str, protocol: Protocol, index: int, *, seed: int) -> np.random.Generator:
    """The random numbers of one episode."""
    described = json.dumps([seed, dataset, protocol_to_json(protocol)], sort_keys=True)
    entropy = int.from_bytes(hashlib.sha256(described.encode()).digest())
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(index,)))


def _shots(
    random: np.random.Generator, features: LabeledFeatures, shots: int, split: str
) -> list[Rows]:
    pools = features.rows_by_class(split)
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


def _number_present(
    random: np.random.Generator, protocol: Protocol, counts: Int64[np.ndarray, " class"]
) -> int:
    match protocol:
        case ZeroShotProtocol():
            return int(random.choice(numbers_that_fit(protocol, counts)))
        case AllClassesProtocol():
            return len(counts)
        case _:
            return protocol.classes_present


def _query(random: np.random.Generator, protocol: Protocol, pools: Pools, present: int) -> Rows:
    """Rows of the query in any order, or PoolTooSmall: then another draw may do."""
    match protocol:
        case ZeroShotProtocol() | FewShotProtocol():
            return _from_pool(random, pools, present, protocol.queries)
        case BalancedProtocol():
            share, rest = divmod(protocol.queries, present)
            counts = np.array([share + 1] * rest + [share] * (present - rest))
            return _of_counts(random, pools, counts)
        case DirichletProtocol():
            proportions = random.dirichlet(np.full(present, protocol.concentration))
            return _of_counts(random, pools, _rounded(proportions * protocol.queries))
        case AllClassesProtocol():
            return _all_classes(random, protocol, pools)


def _from_pool(random: np.random.Generator, pools: Pools, present: int, queries: int) -> Rows:
    classes = random.choice(len(pools), present, replace=False)
    pool = np.concatenate([pools[k] for k in classes])
    if len(pool) < queries:
        raise PoolTooSmall
    return random.choice(pool, queries, replace=False)


def _rounded(shares: np.ndarray) -> Int64[np.ndarray, " n"]:
    """Whole numbers with the same sum: the largest remainders are rounded up."""
    counts: Int64[np.ndarray, " n"] = np.floor(shares).astype(np.int64)
    missing = round(float(shares.sum())) - int(counts.sum())
    counts[np.argsort(counts - shares, kind="stable")[:missing]] += 1
    return counts


def _of_counts(random: np.random.Generator, pools: Pools, counts: Int64[np.ndarray, " n"]) -> Rows:
    classes = random.choice(len(pools), len(counts), replace=False)
    if any(len(pools[k]) < count for k, count in zip(classes, counts, strict=True)):
        raise PoolTooSmall
    drawn = zip(classes, counts, strict=True)
    return np.concatenate([random.choice(pools[k], count, replace=False) for k, count in drawn])


def _all_classes(random: np.random.Generator, protocol: AllClassesProtocol, pools: Pools) -> Rows:
    mixed = [random.permutation(pool) for pool in pools]
    one_each, others = [rows[:1] for rows in mixed], np.concatenate([rows[1:] for rows in mixed])
    wanted = len(others) if protocol.queries is None else protocol.queries - len(one_each)
    return np.concatenate([*one_each, random.choice(others, wanted, replace=False)])
