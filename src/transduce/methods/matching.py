"""Matching of clusters with classes (section 4.3 of the paper).

Each cluster votes with the mean of its members' zero-shot probabilities (in the embedding space,
with the probabilities of its members' mean direction). `graph` matches clusters
and classes one to one, maximizing the total vote; `argmax` lets each cluster take its favorite,
so that several may share one; `none` trusts that cluster k already is class k (few-shot).
"""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from transduce.errors import InvalidSetting
from transduce.simplex.grouping import group_sums
from transduce.simplex.probabilities import blocks, zero_shot_probabilities
from transduce.task import Task
from transduce.validation import unit_rows

Matching = Literal["graph", "argmax", "none"]
EMPTY = -1
TAKEN = -1.0  # a vote that no class can win with


def check_matching(matching: str) -> None:
    """Raise `InvalidSetting` for an unknown kind of matching."""
    if matching not in get_args(Matching):
        raise InvalidSetting(
            f"Expected matching to be one of {get_args(Matching)}, found {matching!r}."
        )


def match(
    clusters: Int[np.ndarray, " query"],
    task: Task,
    matching: Matching,
    anchored: Bool[np.ndarray, " class"] | None = None,
) -> Int[np.ndarray, " class"]:
    """Return the class index of each cluster (class,); EMPTY for clusters without queries.

    Where `anchored` is true, cluster k is class k: it has shots. The others are matched.
    """
    if matching == "none":
        return np.arange(task.n_classes)
    members, votes = cluster_votes(clusters, task)
    return match_votes(members, votes, matching, anchored)


def match_votes(
    members: Int[np.ndarray, " cluster"],
    votes: Float[np.ndarray, "cluster class"],
    matching: Matching,
    anchored: Bool[np.ndarray, " class"] | None = None,
) -> Int[np.ndarray, " class"]:
    """Return the class index of each cluster (class,) from the votes of those with members."""
    class_of_cluster = np.full(votes.shape[1], EMPTY)
    if anchored is not None and anchored.any():
        class_of_cluster[anchored] = np.flatnonzero(anchored)
        votes[:, anchored] = TAKEN
        loose = ~anchored[members]
        members, votes = members[loose], votes[loose]
    if matching == "argmax":
        class_of_cluster[members] = votes.argmax(1)
    else:
        from scipy.optimize import linear_sum_assignment  # here, because it takes 0.3 s to import

        rows, columns = linear_sum_assignment(votes, maximize=True)
        class_of_cluster[members[rows]] = columns
    return class_of_cluster


def cluster_votes(
    clusters: Int[np.ndarray, " query"], task: Task
) -> tuple[Int[np.ndarray, " cluster"], Float[np.ndarray, "cluster class"]]:
    """Return the clusters with members (cluster,), and their votes (cluster, class)."""
    present, members = np.unique(clusters, return_inverse=True)
    if task.space == "probability" or task.class_embeddings is None:
        return present, _means(members, task.zero_shot)
    # In the embedding space the mean image is asked, rather than the images one by one.
    centers = unit_rows("cluster centers", _means(members, task.query))
    return present, zero_shot_probabilities(centers, task.class_embeddings, task.temperature)


def _means(
    members: Int[np.ndarray, " query"], rows: Float[np.ndarray, "query column"]
) -> Float[np.ndarray, "cluster column"]:
    counts = np.bincount(members)
    sums = group_sums(rows, members, len(counts), lambda part: part)
    return sums / counts[:, np.newaxis]


def in_classes(
    assignments: Float[np.ndarray, "query class"],
    class_of_cluster: Int[np.ndarray, " class"],
) -> Float[np.ndarray, "query class"]:
    """Turn cluster probabilities (query, class) into class probabilities, in the same array.

    Columns move; those of clusters that share a class add up.
    What little lies in clusters without members goes to the classes that nobody took, so that the
    rows still sum to one.
    """
    target = column_targets(class_of_cluster)
    one_to_one = len(np.unique(target)) == len(target)
    for rows in blocks(*assignments.shape):
        part = assignments[rows].copy()
        if one_to_one:
            assignments[rows, target] = part
            continue
        assignments[rows] = 0.0
        for cluster, label in enumerate(target):
            assignments[rows, label] += part[:, cluster]
    return assignments


def column_targets(class_of_cluster: Int[np.ndarray, " class"]) -> Int[np.ndarray, " class"]:
    """Class whose column each cluster's column becomes, for clusters without members too."""
    target = class_of_cluster.copy()
    empty = np.flatnonzero(target == EMPTY)
    free = np.setdiff1d(np.arange(len(target)), target)
    # An empty cluster keeps its own class if that one is free; the others fill up in order.
    own = empty[np.isin(empty, free)]
    target[own] = own
    rest = np.setdiff1d(empty, own)
    target[rest] = np.resize(np.setdiff1d(free, own), len(rest)) if len(free) > len(own) else rest
    return target
