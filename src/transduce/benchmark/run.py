"""A Run: one method on one dataset under one protocol, as a value with a stable name."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from transduce.benchmark.episodes.protocol import Protocol, protocol_from_json, protocol_to_json
from transduce.errors import InvalidFile, InvalidSetting, UnknownName
from transduce.methods import METHODS, Method

Setting = str | int | float | bool | None
# `similarity`: the cosines themselves, without the softmax, as in the paper's appendix.
View = Literal["probability", "embedding", "similarity"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What decides the answers, and nothing else: not where or how fast they are computed.

    `settings` are those that differ from the method's defaults. A `tuned` run chooses the settings
    of the method's grid on validation tasks first.
    """

    dataset: str
    encoder: str
    method: str
    protocol: Protocol
    settings: tuple[tuple[str, Setting], ...] = ()
    space: View = "probability"
    tasks: int = 1000
    seed: int = 2024
    temperature: float = 30.0
    query_split: str = "test"
    support_split: str = "train"
    tuned: bool = False

    def __post_init__(self) -> None:
        if self.space not in get_args(View):
            raise InvalidSetting(
                f"Expected space to be one of {get_args(View)}, found {self.space!r}."
            )
        if self.tasks < 2:
            raise InvalidSetting(f"Expected at least 2 tasks, for an interval, found {self.tasks}.")
        object.__setattr__(self, "settings", tuple(sorted(self.settings)))

    @property
    def id(self) -> str:
        """A file name: readable in front, unique at the end."""
        protocol = self.protocol
        words = [self.dataset, self.encoder, f"{protocol.shots}-shot", self.space, self.method]
        slug = "--".join(re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-") for word in words)
        return f"{slug[:120]}--{digest(self.to_json())}"

    def to_json(self) -> dict[str, Any]:
        value = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            **value,
            "protocol": protocol_to_json(self.protocol),
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Run":
        try:
            value = dict(found)
            value["protocol"] = protocol_from_json(value["protocol"])
            value["settings"] = tuple(value["settings"].items())
            return cls(**value)
        except (AttributeError, KeyError, TypeError) as error:
            raise InvalidFile(
                f"Expected the fields of a run, found trouble with {error}."
            ) from None

    def build(self, **tuned: Setting) -> Method:
        """The method with its settings; `tuned` ones come on top."""
        return build_method(self.method, {**dict(self.settings), **tuned})


def build_method(name: str, settings: Mapping[str, Setting]) -> Method:
    check_settings(name, settings)
    return METHODS[name](**settings)


def check_settings(name: str, settings: Mapping[str, Setting]) -> None:
    """Refuse settings that the method does not have, with the nearest one it has."""
    known = [field.name for field in fields(METHODS[name])]
    for setting in settings:
        if setting not in known:
            raise UnknownName(f"setting of {name}", setting, known)


def settings_of(method: Method) -> dict[str, Setting]:
    """All settings of a method, the defaults too, as far as JSON can tell them."""
    found = {field.name: getattr(method, field.name) for field in fields(method)}
    return {name: value for name, value in found.items() if isinstance(value, Setting)}


def digest(value: Mapping[str, Any]) -> str:
    """Ten letters that change with anything in a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
