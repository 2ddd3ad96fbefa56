"""What every protocol has, and the checks of settings that protocols share."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np

from transduce.benchmark.episodes.rows import Counts, Pools, Rows
from transduce.errors import InvalidSetting


class EpisodeProtocol(ABC):
    """What every protocol has: a name, shots of every class, and how it draws the queries.

    Concrete protocols are frozen dataclasses; their fields decide the random numbers of an
    episode, so renaming or adding one changes every episode.
    """

    name: ClassVar[str]
    present: ClassVar[str] = "classes_present"  # the setting that bounds the classes of an episode

    @property
    def shots(self) -> int:
        """Labeled images of every class; 0 where a protocol has no such field."""
        return 0

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


def check_present(least: int, counts: Counts, where: str) -> None:
    """Refuse fewer classes with images than `least`."""
    filled = int((counts > 0).sum())
    if filled < least:
        raise InvalidSetting(
            f"Expected at least {least} classes with images in {where}, found {filled}."
        )


def check_range(fewest: int, most: int) -> None:
    """Refuse numbers of classes in the wrong order."""
    if fewest > most:
        raise InvalidSetting(
            f"Expected fewest <= most classes, found {fewest} > {most}; swap them."
        )


def check_whole_numbers(protocol: EpisodeProtocol, **smallest: int) -> None:
    """Refuse settings that are no whole numbers, or smaller than named."""
    for name, least in smallest.items():
        value = getattr(protocol, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidSetting(
                f"Expected {name} to be a whole number from {least}, found {value!r}."
            )
