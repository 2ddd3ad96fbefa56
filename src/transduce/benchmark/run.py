"""Runs: one method on one dataset under one protocol, as a value with a stable name."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from transduce.benchmark.episodes.episode_protocol import EpisodeProtocol
from transduce.benchmark.episodes.protocol import (
    protocol_from_json,
    protocol_to_json,
)
from transduce.errors import InvalidFile, InvalidSetting, UnknownName
from transduce.machine.atomic import from_plain, to_plain
from transduce.methods import METHODS, Method

Setting = str | int | float | bool | None
# `similarity`: the cosines themselves, without the softmax, as in the paper's appendix.
FeatureSpace = Literal["probability", "embedding", "similarity"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """All that decides the answers of a method, and nothing else: not where they are computed.

    Parameters
    ----------
    dataset, encoder : str
        Names that `sources.load_features` understands.
    method : str
        Name in `METHODS`.
    protocol : EpisodeProtocol
        How tasks are drawn.
    settings : tuple of (name, value)
        Settings that differ from the method's defaults.
    space : {"probability", "embedding", "similarity"}
        Features that the method sees.
    tasks, seed : int
        How many tasks, and the seed of their random numbers.
    temperature : float
        Of the softmax over cosines; 30 as in the paper.
    query_split, support_split : str
        Splits that queries and shots come from.
    tuned : bool
        Choose the settings of the method's grid on validation tasks first.
    """

    dataset: str
    encoder: str
    method: str
    protocol: EpisodeProtocol
    settings: tuple[tuple[str, Setting], ...] = ()
    space: FeatureSpace = "probability"
    tasks: int = 1000
    seed: int = 2024
    temperature: float = 30.0
    query_split: str = "test"
    support_split: str = "train"
    tuned: bool = False

    def __post_init__(self) -> None:
        if self.space not in get_args(FeatureSpace):
            raise InvalidSetting(
                f"Expected space to be one of {get_args(FeatureSpace)}, found {self.space!r}."
            )
        least = 1 if self.protocol.one_draw else 2
        if self.tasks < least:
            raise InvalidSetting(
                f"Expected at least {least} tasks, for an interval, found {self.tasks}."
            )
        object.__setattr__(self, "settings", tuple(sorted(self.settings)))

    @property
    def id(self) -> str:
        """File name of the run: readable in front, unique at the end."""
        protocol = self.protocol
        words = [self.dataset, self.encoder, f"{protocol.shots}-shot", self.space, self.method]
        slug = "--".join(re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-") for word in words)
        return f"{slug[:120]}--{digest(self.to_json())}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, from which `id` is computed."""
        return {
            **to_plain(self),
            "protocol": protocol_to_json(self.protocol),
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Run":
        """Return the run that `to_json` wrote."""
        try:
            protocol = protocol_from_json(data["protocol"])
            settings = tuple(data["settings"].items())
        except (AttributeError, KeyError, TypeError) as error:
            raise InvalidFile(
                f"Expected the fields of a run, found trouble with {error}."
            ) from None
        return from_plain(cls, {**data, "protocol": protocol, "settings": settings}, "run")

    def build(self, **tuned: Setting) -> Method:
        """Return the method with the run's settings and, on top of them, the `tuned` ones."""
        return build_method(self.method, {**dict(self.settings), **tuned})


def build_method(name: str, settings: Mapping[str, Setting]) -> Method:
    """Return the method of this name with these settings."""
    check_settings(name, settings)
    return METHODS[name](**settings)


def check_settings(name: str, settings: Mapping[str, Setting]) -> None:
    """Refuse settings that the method does not have, with the nearest one it has."""
    known = [field.name for field in fields(METHODS[name])]
    for setting in settings:
        if setting not in known:
            raise UnknownName(f"setting of {name}", setting, known)


def settings_of(method: Method) -> dict[str, Setting]:
    """Return all settings of a method that JSON can hold, its defaults too."""
    values = {field.name: getattr(method, field.name) for field in fields(method)}
    return {name: value for name, value in values.items() if isinstance(value, Setting)}


def digest(value: Mapping[str, Any]) -> str:
    """Return ten hexadecimal digits that change with anything in a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
