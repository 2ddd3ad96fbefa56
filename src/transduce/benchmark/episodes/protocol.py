"""Protocols: how the queries of an episode are drawn. Each is a value: hashable, and JSON.

A protocol refuses settings that no dataset could meet when it is built, and in `check` what one
dataset cannot meet. A new protocol is one class and its line in `PROTOCOLS`;
those of regimes are in `regimes`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int64

from transduce.benchmark.episodes.episode_protocol import (
    EpisodeProtocol,
    check_range,
    check_whole_numbers,
)
from transduce.benchmark.episodes.regimes import (
    FewShotRegimeProtocol,
    PerClassProtocol,
    RegimeProtocol,
    SkewedProtocol,
)
from transduce.benchmark.episodes.rows import (
    Counts,
    Pools,
    Rows,
    even_counts,
    from_pool,
    of_counts,
    rounded_counts,
    until_enough,
)
from transduce.catalogue import Catalogue
from transduce.errors import InvalidSetting
from transduce.machine.atomic import from_plain, to_plain


@dataclass(frozen=True, kw_only=True)
class ZeroShotProtocol(EpisodeProtocol):
    """Zero-shot tasks of the paper: images from the pool of `fewest` to `most` classes.

    The number of classes is uniform. If the classes drawn have fewer images than `queries`,
    others are drawn; a number of classes that could never hold as many is left out.

    Parameters
    ----------
    queries : int
        Images of a task.
    fewest, most : int
        Classes present.
    """

    name: ClassVar[str] = "zero-shot"
    present: ClassVar[str] = "most"

    queries: int = 75
    fewest: int = 3
    most: int = 10

    def __post_init__(self) -> None:
        check_whole_numbers(self, queries=1, fewest=1, most=1)
        check_range(self.fewest, self.most)

    def numbers_present(self, counts: Counts) -> Int64[np.ndarray, " number"]:
        """Return `fewest` to `most` without the numbers of classes too few to fill the query."""
        numbers = np.arange(self.fewest, self.most + 1)
        largest = np.cumsum(np.sort(counts)[::-1])
        return numbers[largest[numbers - 1] >= self.queries]

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw the number of classes once, then classes until they hold enough images."""
        numbers = self.numbers_present(np.array([len(pool) for pool in pools]))
        present = int(random.choice(numbers))
        return until_enough(lambda: from_pool(random, pools, present, self.queries))


@dataclass(frozen=True, kw_only=True)
class FewShotProtocol(EpisodeProtocol):
    """Few-shot tasks of the paper: `shots` of every class, queries from the pool of a few.

    Parameters
    ----------
    shots, queries : int
        Labeled images of every class; images to label.
    classes_present : int
        Classes that the queries come from.
    """

    name: ClassVar[str] = "few-shot"

    shots: int = 4
    queries: int = 75
    classes_present: int = 5

    def __post_init__(self) -> None:
        check_whole_numbers(self, shots=1, queries=1, classes_present=1)

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw classes until they hold enough images."""
        present = self.classes_present
        return until_enough(lambda: from_pool(random, pools, present, self.queries))


@dataclass(frozen=True, kw_only=True)
class BalancedProtocol(EpisodeProtocol):
    """As many queries of each class present; some have one more, where it does not come out even.

    Parameters
    ----------
    queries, classes_present, shots : int
        As in `FewShotProtocol`; without shots by default.
    """

    name: ClassVar[str] = "balanced"

    queries: int = 75
    classes_present: int = 5
    shots: int = 0

    def __post_init__(self) -> None:
        check_whole_numbers(self, shots=0, queries=1, classes_present=1)
        if self.classes_present > self.queries:
            raise InvalidSetting(
                f"Expected at least as many queries as classes_present, found {self.queries} "
                f"queries of {self.classes_present} classes; raise queries or lower "
                "classes_present."
            )

    def check(self, counts: Counts, where: str) -> None:
        """Refuse too few classes with an even share of the queries."""
        present = self.classes_present
        largest = np.sort(counts)[::-1][:present]
        wanted = even_counts(self.queries, present)
        if len(largest) == present and (largest < wanted).any():
            enough = int((counts >= wanted[-1]).sum())
            raise InvalidSetting(
                f"Expected {present} classes of {where} with {self.queries} / {present} = "
                f"{self.queries / present:g} images each, found {enough} with {wanted[-1]} or "
                f"more; lower queries to {int(largest[-1]) * present} or less."
            )
        super().check(counts, where)

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw classes until each holds its share."""
        counts = even_counts(self.queries, self.classes_present)
        return until_enough(lambda: of_counts(random, pools, counts))


@dataclass(frozen=True, kw_only=True)
class DirichletProtocol(EpisodeProtocol):
    """Classes in proportions drawn from a symmetric Dirichlet.

    A class present may end up with no query at all; if one has fewer images than its share,
    proportions and classes are drawn again.

    Parameters
    ----------
    queries, classes_present, shots : int
        As in `FewShotProtocol`; without shots by default.
    concentration : float
        The smaller, the less balanced; 2 as in alpha-TIM (Veilleux et al., NeurIPS 2021).
    """

    name: ClassVar[str] = "dirichlet"

    queries: int = 75
    classes_present: int = 5
    concentration: float = 2.0
    shots: int = 0

    def __post_init__(self) -> None:
        check_whole_numbers(self, shots=0, queries=1, classes_present=1)
        if not (math.isfinite(self.concentration) and self.concentration > 0):
            raise InvalidSetting(
                f"Expected a positive concentration, found {self.concentration!r}."
            )

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw proportions and classes until each class holds its share."""
        concentrations = np.full(self.classes_present, self.concentration)

        def attempt() -> Rows:
            shares = random.dirichlet(concentrations) * self.queries
            return of_counts(random, pools, rounded_counts(shares))

        return until_enough(attempt)


@dataclass(frozen=True, kw_only=True)
class AllClassesProtocol(EpisodeProtocol):
    """Every class of the split: all its images, or one of each class and the rest from the pool.

    Parameters
    ----------
    queries : int or None
        Images to label; None for all of the split.
    shots : int
        Labeled images of every class.
    """

    name: ClassVar[str] = "all-classes"

    queries: int | None = None
    shots: int = 0

    def __post_init__(self) -> None:
        check_whole_numbers(self, shots=0)
        if self.queries is not None:
            check_whole_numbers(self, queries=1)

    def check(self, counts: Counts, where: str) -> None:
        """Refuse classes without images, and more queries than images."""
        if not counts.all():
            empty = np.flatnonzero(counts == 0)
            raise InvalidSetting(
                f"Expected images of all {len(counts)} classes in {where}, found none of "
                f"{len(empty)}, such as number {empty[0]}; choose another protocol or split."
            )
        if self.queries is not None and not len(counts) <= self.queries <= counts.sum():
            raise InvalidSetting(
                f"Expected {len(counts)} (one of each class) to {counts.sum()} queries in {where}, "
                f"found {self.queries}."
            )

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw one row of each class and the rest from all others."""
        mixed = [random.permutation(pool) for pool in pools]
        first, others = [rows[:1] for rows in mixed], np.concatenate([rows[1:] for rows in mixed])
        wanted = len(others) if self.queries is None else self.queries - len(first)
        return np.concatenate([*first, random.choice(others, wanted, replace=False)])

    def with_at_most(self, queries: int) -> "AllClassesProtocol":
        """Return the protocol itself: fewer queries may not hold every class."""
        return self


PROTOCOLS: Catalogue[type[EpisodeProtocol]] = Catalogue(
    "protocol",
    {
        ZeroShotProtocol.name: ZeroShotProtocol,
        FewShotProtocol.name: FewShotProtocol,
        BalancedProtocol.name: BalancedProtocol,
        DirichletProtocol.name: DirichletProtocol,
        AllClassesProtocol.name: AllClassesProtocol,
        RegimeProtocol.name: RegimeProtocol,
        SkewedProtocol.name: SkewedProtocol,
        PerClassProtocol.name: PerClassProtocol,
        FewShotRegimeProtocol.name: FewShotRegimeProtocol,
    },
)


def protocol_to_json(protocol: EpisodeProtocol) -> dict[str, Any]:
    """Return the name and the settings of a protocol."""
    return {"name": protocol.name, **to_plain(protocol)}


def protocol_from_json(data: Mapping[str, Any]) -> EpisodeProtocol:
    """Return the protocol that `protocol_to_json` wrote; settings left out keep their default."""
    settings = {name: value for name, value in data.items() if name != "name"}
    kind = PROTOCOLS[data.get("name", "")]
    where = f"protocol {kind.name}"
    return from_plain(kind, settings, where, refuse_unknown=True, error=InvalidSetting)
