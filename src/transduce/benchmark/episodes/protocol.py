"""Protocols: how the queries of an episode are drawn. Each is a value: hashable, and JSON.

A protocol refuses settings that no dataset could meet when it is built, and in `check` what one
dataset cannot meet. A new protocol is one class here and its line in `PROTOCOLS`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from jaxtyping import Int64

from transduce.atomic import from_plain, to_plain
from transduce.benchmark.episodes.rows import (
    Counts,
    Pools,
    Rows,
    even_counts,
    from_pool,
    of_counts,
    rounded_counts,
    until_enough,
    up_to,
)
from transduce.catalogue import Catalogue
from transduce.errors import InvalidSetting


class EpisodeProtocol(ABC):
    """What every protocol has: a name, shots of every class, and how it draws the queries.

    Concrete protocols are frozen dataclasses; their fields decide the random numbers of an
    episode, so renaming or adding one changes every episode.
    """

    name: ClassVar[str]
    present: ClassVar[str] = "classes_present"  # the setting that bounds the classes of an episode

    @property
    @abstractmethod
    def shots(self) -> int:
        """Labeled images of every class; 0 for zero-shot."""

    @property
    @abstractmethod
    def queries(self) -> int | None:
        """Images to label in an episode; None for all of the split."""

    def check(self, counts: Counts, where: str) -> None:
        """Refuse, with the numbers, what no draw from classes of these sizes can meet.

        By default: too few classes, or too few images in the largest ones.
        """
        present, queries = getattr(self, self.present), self.queries or 0
        if present > len(counts):
            raise InvalidSetting(
                f"Expected at least {present} classes in {where} for {self.name} episodes, found "
                f"{len(counts)}; lower {self.present} to {len(counts)} or less."
            )
        pool = int(np.sort(counts)[-present:].sum())
        if pool < queries:
            raise InvalidSetting(
                f"Expected {queries} images in {present} classes of {where}, found {pool} in "
                f"its {present} largest; lower queries to {pool} or less."
            )

    @abstractmethod
    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Return rows of the queries, in any order; PoolTooSmall if they are hardly ever found."""

    @property
    def one_draw(self) -> bool:
        """Whether every episode holds the same images, so that one task is all there is."""
        return False

    @property
    def share_with_shots(self) -> float:
        """Share of the classes that have shots, 0 to 1."""
        return 1.0

    def with_at_most(self, queries: int) -> "EpisodeProtocol":
        """Return the protocol with its queries limited, for tuning."""
        fewer = replace(cast(Any, self), queries=min(queries, self.queries or queries))
        return cast(EpisodeProtocol, fewer)


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
        _check_whole(self, queries=1, fewest=1, most=1)
        if self.fewest > self.most:
            raise InvalidSetting(
                f"Expected fewest <= most classes, found {self.fewest} > {self.most}; swap them."
            )

    @property
    def shots(self) -> int:
        """Always 0."""
        return 0

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
        _check_whole(self, shots=1, queries=1, classes_present=1)

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
        _check_whole(self, shots=0, queries=1, classes_present=1)
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
        _check_whole(self, shots=0, queries=1, classes_present=1)
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
        _check_whole(self, shots=0)
        if self.queries is not None:
            _check_whole(self, queries=1)

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


@dataclass(frozen=True, kw_only=True)
class RegimeProtocol(EpisodeProtocol):
    """Up to `queries` images from the pool of `fewest` to `most` classes, as many as there are.

    The number of classes is uniform, up to the number of classes with images. Classes that hold
    fewer images than `queries` give all of theirs; nothing is drawn again.

    Parameters
    ----------
    queries : int
        Largest number of images of a task.
    fewest, most : int
        Classes present; a dataset with fewer than `fewest` is refused.
    """

    name: ClassVar[str] = "regime"

    queries: int = 64
    fewest: int = 2
    most: int = 10

    def __post_init__(self) -> None:
        _check_whole(self, queries=1, fewest=1, most=1)
        if self.fewest > self.most:
            raise InvalidSetting(
                f"Expected fewest <= most classes, found {self.fewest} > {self.most}; swap them."
            )

    @property
    def shots(self) -> int:
        """Always 0."""
        return 0

    def check(self, counts: Counts, where: str) -> None:
        """Refuse fewer than `fewest` classes with images."""
        _check_present(self.fewest, counts, where)

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw the number of classes, the classes, and images of their pool."""
        filled = [pool for pool in pools if len(pool)]
        present = int(random.integers(self.fewest, min(self.most, len(filled)) + 1))
        return up_to(random, filled, present, self.queries)


@dataclass(frozen=True, kw_only=True)
class SkewedProtocol(EpisodeProtocol):
    """A long tail: up to `queries` images of all classes, in proportions from a Dirichlet.

    Counts are drawn from the proportions; a class with fewer images than its count gives all.

    Parameters
    ----------
    queries : int
        Largest number of images of a task.
    concentration : float
        Of the symmetric Dirichlet; the smaller, the fewer classes hold most of the images.
    """

    name: ClassVar[str] = "skewed"

    queries: int = 1000
    concentration: float = 0.1

    def __post_init__(self) -> None:
        _check_whole(self, queries=1)
        if not (math.isfinite(self.concentration) and self.concentration > 0):
            raise InvalidSetting(
                f"Expected a positive concentration, found {self.concentration!r}."
            )

    @property
    def shots(self) -> int:
        """Always 0."""
        return 0

    def check(self, counts: Counts, where: str) -> None:
        """Refuse a split without images."""
        _check_present(1, counts, where)

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw the proportions, the count of each class, and as many images as it has."""
        filled = [pool for pool in pools if len(pool)]
        total = min(self.queries, sum(map(len, filled)))
        shares = random.dirichlet(np.full(len(filled), self.concentration))
        counts = random.multinomial(total, shares)
        drawn = zip(filled, counts, strict=True)
        return np.concatenate([up_to(random, [pool], 1, count) for pool, count in drawn if count])


@dataclass(frozen=True, kw_only=True)
class PerClassProtocol(EpisodeProtocol):
    """The same number of images of every class that has any, or all images of the split once.

    Parameters
    ----------
    images : int or None
        Images of each class, as many as it has; None for all, which is one task.
    """

    name: ClassVar[str] = "per-class"

    images: int | None = None

    def __post_init__(self) -> None:
        if self.images is not None:
            _check_whole(self, images=1)

    @property
    def shots(self) -> int:
        """Always 0."""
        return 0

    @property
    def queries(self) -> int | None:
        """Not known before the dataset is."""
        return None

    @property
    def one_draw(self) -> bool:
        """Whether it takes all images."""
        return self.images is None

    def check(self, counts: Counts, where: str) -> None:
        """Refuse a split without images."""
        _check_present(1, counts, where)

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw the images of each class."""
        filled = [pool for pool in pools if len(pool)]
        return np.concatenate([up_to(random, [p], 1, self.images or len(p)) for p in filled])

    def with_at_most(self, queries: int) -> "PerClassProtocol":
        """Return the protocol itself."""
        return self


@dataclass(frozen=True, kw_only=True)
class FewShotRegimeProtocol(EpisodeProtocol):
    """Shots of all classes or of a share of them, and up to `queries` images of some or all.

    Parameters
    ----------
    shots, queries : int
        Labeled images of each class that has shots; largest number of images to label.
    classes_present : int or None
        Classes that the queries come from; None for all.
    share : float
        Share of the classes that have shots; at least one class has.
    """

    name: ClassVar[str] = "few-shot-regime"

    shots: int = 4
    queries: int = 300
    classes_present: int | None = None
    share: float = 1.0

    def __post_init__(self) -> None:
        _check_whole(self, shots=1, queries=1)
        if self.classes_present is not None:
            _check_whole(self, classes_present=1)
        if not 0 < self.share <= 1:
            raise InvalidSetting(f"Expected a share above 0, up to 1, found {self.share!r}.")

    @property
    def share_with_shots(self) -> float:
        """The share."""
        return self.share

    def check(self, counts: Counts, where: str) -> None:
        """Refuse fewer classes with images than are to be present."""
        _check_present(self.classes_present or 1, counts, where)

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw the classes, and images of their pool."""
        filled = [pool for pool in pools if len(pool)]
        return up_to(random, filled, self.classes_present or len(filled), self.queries)


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


def _check_present(least: int, counts: Counts, where: str) -> None:
    """Refuse fewer classes with images than `least`."""
    filled = int((counts > 0).sum())
    if filled < least:
        raise InvalidSetting(
            f"Expected at least {least} classes with images in {where}, found {filled}."
        )


def _check_whole(protocol: EpisodeProtocol, **smallest: int) -> None:
    """Refuse settings that are no whole numbers, or smaller than named."""
    for name, least in smallest.items():
        value = getattr(protocol, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidSetting(
                f"Expected {name} to be a whole number from {least}, found {value!r}."
            )
