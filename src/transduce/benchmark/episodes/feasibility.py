"""Whether a dataset can meet a protocol, told by its counts before anything is drawn."""

import numpy as np
from jaxtyping import Int64

from transduce.benchmark.episodes.protocol import (
    AllClassesProtocol,
    BalancedProtocol,
    Protocol,
    ZeroShotProtocol,
)
from transduce.errors import InvalidSetting

Counts = Int64[np.ndarray, " class"]


class PoolTooSmall(Exception):
    """The classes drawn have fewer images than wanted; draw others."""


def check_fits(protocol: Protocol, counts: Counts, where: str) -> None:
    """Refuse, with the numbers, what no draw from classes of these counts can meet."""
    if isinstance(protocol, AllClassesProtocol):
        _check_all(protocol, counts, where)
        return
    present = protocol.most if isinstance(protocol, ZeroShotProtocol) else protocol.classes_present
    setting = "most" if isinstance(protocol, ZeroShotProtocol) else "classes_present"
    if present > len(counts):
        raise InvalidSetting(
            f"Expected at least {present} classes in {where} for {protocol.name} episodes, found "
            f"{len(counts)}; lower {setting} to {len(counts)} or less."
        )
    if isinstance(protocol, BalancedProtocol):
        _check_balanced(protocol, counts, where)
        return
    pool = int(np.sort(counts)[-present:].sum())
    if pool < protocol.queries:
        raise InvalidSetting(
            f"Expected {protocol.queries} images in {present} classes of {where}, found {pool} in "
            f"its {present} largest; lower queries to {pool} or less."
        )


def numbers_that_fit(protocol: ZeroShotProtocol, counts: Counts) -> Int64[np.ndarray, " number"]:
    """How many classes may be present: from `fewest` to `most`, without those too few to fill."""
    numbers = np.arange(protocol.fewest, protocol.most + 1)
    largest = np.cumsum(np.sort(counts)[::-1])
    fitting: Int64[np.ndarray, " number"] = numbers[largest[numbers - 1] >= protocol.queries]
    return fitting


def _check_balanced(protocol: BalancedProtocol, counts: Counts, where: str) -> None:
    share, rest = divmod(protocol.queries, protocol.classes_present)
    present = protocol.classes_present
    largest = np.sort(counts)[::-1][:present]
    wanted = np.array([share + 1] * rest + [share] * (present - rest))
    if (largest < wanted).any():
        enough = int((counts >= wanted[-1]).sum())
        raise InvalidSetting(
            f"Expected {present} classes of {where} with {protocol.queries} / {present} = "
            f"{protocol.queries / present:g} images each, found {enough} with {wanted[-1]} or "
            f"more; lower queries to {int(largest[-1]) * present} or less."
        )


def _check_all(protocol: AllClassesProtocol, counts: Counts, where: str) -> None:
    if not counts.all():
        empty = np.flatnonzero(counts == 0)
        raise InvalidSetting(
            f"Expected images of all {len(counts)} classes in {where}, found none of {len(empty)}, "
            f"such as number {empty[0]}; choose another protocol or split."
        )
    if protocol.queries is not None and not len(counts) <= protocol.queries <= counts.sum():
        raise InvalidSetting(
            f"Expected {len(counts)} (one of each class) to {counts.sum()} queries in {where}, "
            f"found {protocol.queries}."
        )
