"""Protocols of regimes: small and large batches, few classes and all, shots of some.

They take as many images as the classes drawn have, and pass over classes without images.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transduce.benchmark.episodes.episode_protocol import (
    EpisodeProtocol,
    check_present,
    check_range,
    check_whole_numbers,
)
from transduce.benchmark.episodes.rows import Counts, Pools, Rows, up_to
from transduce.errors import InvalidSetting


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
        check_whole_numbers(self, queries=1, fewest=1, most=1)
        check_range(self.fewest, self.most)

    def check(self, counts: Counts, where: str) -> None:
        """Refuse fewer than `fewest` classes with images."""
        check_present(self.fewest, counts, where)

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
        check_whole_numbers(self, queries=1)
        if not (math.isfinite(self.concentration) and self.concentration > 0):
            raise InvalidSetting(
                f"Expected a positive concentration, found {self.concentration!r}."
            )

    def check(self, counts: Counts, where: str) -> None:
        """Refuse a split without images."""
        check_present(1, counts, where)

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw the proportions, the count of each class, and as many images as it has."""
        filled = [pool for pool in pools if len(pool)]
        total = min(self.queries, sum(map(len, filled)))
        shares = random.dirichlet(np.full(len(filled), self.concentration))
        counts = random.multinomial(total, shares).tolist()
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
            check_whole_numbers(self, images=1)

    @property
    def queries(self) -> int | None:
        """None: the number of images depends on the dataset."""
        return None

    @property
    def one_draw(self) -> bool:
        """Whether the protocol takes all images."""
        return self.images is None

    def check(self, counts: Counts, where: str) -> None:
        """Refuse a split without images."""
        check_present(1, counts, where)

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
        check_whole_numbers(self, shots=1, queries=1)
        if self.classes_present is not None:
            check_whole_numbers(self, classes_present=1)
        if not 0 < self.share <= 1:
            raise InvalidSetting(f"Expected a share above 0, up to 1, found {self.share!r}.")

    @property
    def share_with_shots(self) -> float:
        """Share of the classes that have shots, 0 to 1."""
        return self.share

    def check(self, counts: Counts, where: str) -> None:
        """Refuse fewer classes with images than are to be present."""
        check_present(self.classes_present or 1, counts, where)

    def draw(self, random: np.random.Generator, pools: Pools) -> Rows:
        """Draw the classes, and images of their pool."""
        filled = [pool for pool in pools if len(pool)]
        return up_to(random, filled, self.classes_present or len(filled), self.queries)
