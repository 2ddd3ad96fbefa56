"""From clusters to classes, once the clusters are found (section 4.3 of the paper).

Each cluster votes with the mean of its members' zero-shot probabilities. `graph` matches clusters
and classes one to one, maximising the total vote; `argmax` lets each cluster take its favourite,
so that several may share one; `none` trusts that cluster k already is class k (few-shot).
"""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from transduce.errors import InvalidSetting

Matching = Literal["graph", "argmax", "none"]
EMPTY = -1


def check_matching(matching: str) -> None:
    if matching not in get_args(Matching):
        raise InvalidSetting(
            f"Expected matching to be one of {get_args(Matching)}, found {matching!r}."
        )


def match(
    clusters: Int[np.ndarray, " query"],
    zero_shot: Float[np.ndarray, "query class"],
    matching: Matching,
) -> Int[np.ndarray, " class"]:
    """The class of each cluster; EMPTY for clusters that no query is in."""
    n_classes = zero_shot.shape[1]
    if matching == "none":
        return np.arange(n_classes)
    found, members = np.unique(clusters, return_inverse=True)
    votes = np.zeros((len(found), n_classes))
    np.add.at(votes, members, zero_shot)
    votes /= np.bincount(members)[:, np.newaxis]
    class_of_cluster = np.full(n_classes, EMPTY)
    if matching == "argmax":
        class_of_cluster[found] = votes.argmax(1)
    else:
        from scipy.optimize import linear_sum_assignment  # here, because it takes 0.3 s to import

        rows, columns = linear_sum_assignment(votes, maximize=True)
        class_of_cluster[found[rows]] = columns
    return class_of_cluster


def in_classes(
    assignments: Float[np.ndarray, "query class"],
    class_of_cluster: Int[np.ndarray, " class"],
) -> Float[np.ndarray, "query class"]:
    """Cluster probabilities as class probabilities: columns move, and shared classes add up.

    What little lies in clusters without members goes to the classes that nobody took, so that the
    rows still sum to one.
    """
    target = class_of_cluster.copy()
    empty = np.flatnonzero(target == EMPTY)
    free = np.setdiff1d(np.arange(len(target)), target)
    # An empty cluster keeps its own class if that one is free; the others fill up in order.
    own = empty[np.isin(empty, free)]
    target[own] = own
    rest = np.setdiff1d(empty, own)
    target[rest] = np.resize(np.setdiff1d(free, own), len(rest)) if len(free) > len(own) else rest
    if len(np.unique(target)) == len(target):
        moved = np.empty_like(assignments)
        moved[:, target] = assignments
        return moved
    added = np.zeros_like(assignments)
    for cluster, label in enumerate(target):
        added[:, label] += assignments[:, cluster]
    return added
