"""How episodes are drawn, as values: hashable, comparable, and JSON.

A protocol refuses settings that no dataset could meet when it is built; whether one dataset can
meet it is for the sampler to say, which knows the counts.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from transduce.catalogue import Catalogue
from transduce.errors import InvalidSetting


@dataclass(frozen=True, kw_only=True)
class ZeroShotProtocol:
    """The paper's zero-shot tasks: images from the pool of `fewest` to `most` classes.

    How many is uniform. If the classes drawn have fewer images than `queries`, others are drawn;
    a number of classes that could never hold as many is left out.
    """

    name: ClassVar[str] = "zero-shot"
    shots: ClassVar[int] = 0

    queries: int = 75
    fewest: int = 3
    most: int = 10

    def __post_init__(self) -> None:
        _whole("queries", self.queries, 1)
        _whole("fewest", self.fewest, 1)
        _whole("most", self.most, 1)
        if self.fewest > self.most:
            raise InvalidSetting(
                f"Expected fewest <= most classes, found {self.fewest} > {self.most}; swap them."
            )


@dataclass(frozen=True, kw_only=True)
class FewShotProtocol:
    """The paper's few-shot tasks: `shots` of every class, queries from the pool of a few."""

    name: ClassVar[str] = "few-shot"

    shots: int = 4
    queries: int = 75
    classes_present: int = 5

    def __post_init__(self) -> None:
        _whole("shots", self.shots, 1)
        _whole("queries", self.queries, 1)
        _whole("classes_present", self.classes_present, 1)


@dataclass(frozen=True, kw_only=True)
class BalancedProtocol:
    """As many queries of each class present (one more of some, where it does not come out even)."""

    name: ClassVar[str] = "balanced"

    queries: int = 75
    classes_present: int = 5
    shots: int = 0

    def __post_init__(self) -> None:
        _whole("shots", self.shots, 0)
        _whole("queries", self.queries, 1)
        _classes_among_queries(self.classes_present, self.queries)


@dataclass(frozen=True, kw_only=True)
class DirichletProtocol:
    """Classes in proportions drawn from a symmetric Dirichlet: the smaller, the less balanced.

    2 is the setting of alpha-TIM (Veilleux et al., NeurIPS 2021). A class present may end up
    with no query at all; if one has fewer images than its share, all is drawn again.
    """

    name: ClassVar[str] = "dirichlet"

    queries: int = 75
    classes_present: int = 5
    concentration: float = 2.0
    shots: int = 0

    def __post_init__(self) -> None:
        _whole("shots", self.shots, 0)
        _whole("queries", self.queries, 1)
        _whole("classes_present", self.classes_present, 1)
        if not (math.isfinite(self.concentration) and self.concentration > 0):
            raise InvalidSetting(
                f"Expected a positive concentration, found {self.concentration!r}."
            )


@dataclass(frozen=True, kw_only=True)
class AllClassesProtocol:
    """Every class of the split: all its images, or one of each class and the rest from the pool."""

    name: ClassVar[str] = "all-classes"

    queries: int | None = None
    shots: int = 0

    def __post_init__(self) -> None:
        _whole("shots", self.shots, 0)
        if self.queries is not None:
            _whole("queries", self.queries, 1)


Protocol = (
    ZeroShotProtocol | FewShotProtocol | BalancedProtocol | DirichletProtocol | AllClassesProtocol
)
PROTOCOLS: Catalogue[type[Protocol]] = Catalogue(
    "protocol",
    {
        kind.name: kind
        for kind in (
            ZeroShotProtocol,
            FewShotProtocol,
            BalancedProtocol,
            DirichletProtocol,
            AllClassesProtocol,
        )
    },
)


def protocol_to_json(protocol: Protocol) -> dict[str, Any]:
    return {"name": protocol.name, **asdict(protocol)}


def protocol_from_json(found: Mapping[str, Any]) -> Protocol:
    """The protocol that `protocol_to_json` wrote; settings left out keep their default."""
    settings = dict(found)
    kind = PROTOCOLS[settings.pop("name", "")]
    known = {field.name for field in fields(kind)}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise InvalidSetting(
            f"Expected settings of {kind.name} ({', '.join(sorted(known))}), "
            f"found {', '.join(unknown)}; remove them."
        )
    return kind(**settings)


def _whole(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidSetting(f"Expected {name} to be a whole number from {least}, found {value!r}.")


def _classes_among_queries(classes_present: int, queries: int) -> None:
    _whole("classes_present", classes_present, 1)
    if classes_present > queries:
        raise InvalidSetting(
            f"Expected at least as many queries as classes_present, found {queries} queries of "
            f"{classes_present} classes; raise queries or lower classes_present."
        )
