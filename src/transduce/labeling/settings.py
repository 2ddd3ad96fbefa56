"""What a labeling run was asked to do, and `run.toml`, which asks for the same again."""

import json
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from transduce.encoders.class_names import ClassNames
from transduce.encoders.prompts import DEFAULT_TEMPLATE
from transduce.errors import InvalidRun, InvalidSetting

AUTO = "auto"
EVERYTHING = "all"
FORMAT = "transduce-run"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSettings:
    """The choices that decide the labels. Every field is a line of `run.toml`."""

    source: str
    classes: tuple[str, ...]
    prompts: tuple[str, ...]
    folder: str = ""  # where the command was typed: the other paths may be relative to it
    templates: tuple[str, ...] = (DEFAULT_TEMPLATE,)
    encoder: str = "default"
    features: str = ""  # a feature store to read instead of embedding the source
    method: str = AUTO
    classes_present: int | Literal["auto", "all"] = "auto"
    batch: int | Literal["all"] = "all"
    support: str = ""  # a folder with a sub-folder of images for each class
    support_from: str = ""  # a reviewed.csv: file_name, label
    allow_unknown: bool = False
    min_score: float = 0.0
    truth: str = ""
    temperature: float = 30.0
    seed: int = 0
    offline: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.min_score <= 1.0:
            raise InvalidSetting(f"Expected --min-score between 0 and 1, found {self.min_score}.")
        if isinstance(self.batch, int) and self.batch < 1:
            raise InvalidSetting(f"Expected --batch of at least 1 or all, found {self.batch}.")
        if isinstance(self.classes_present, int) and self.classes_present < 1:
            raise InvalidSetting(
                "Expected --classes-present to be a whole number from 1, auto or all, found "
                f"{self.classes_present}."
            )

    def path(self, name: str) -> Path:
        """A path of these settings, whatever the present working folder."""
        return Path(self.folder) / Path(name).expanduser()

    @property
    def names(self) -> ClassNames:
        return ClassNames.of(self.classes, self.prompts)


def to_toml(settings: LabelSettings) -> str:
    lines = [
        "# Made by transduce label. Do it again: transduce label --run run.toml",
        f"format = {_toml(FORMAT)}",
        f"version = {VERSION}",
        "",
    ]
    lines += [
        f"{field.name} = {_toml(getattr(settings, field.name))}" for field in fields(settings)
    ]
    return "\n".join(lines) + "\n"


def read_settings(path: Path) -> LabelSettings:
    """The settings of a `run.toml`, or an error that names the line that is wrong."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidRun(f"Expected a run.toml, found no {path}; check the path.") from None
    except (OSError, ValueError) as error:
        raise InvalidRun(f"Expected TOML in {path}, found {error}.") from None
    if found.pop("format", None) != FORMAT or found.pop("version", None) != VERSION:
        raise InvalidRun(f"Expected a {FORMAT} file of version {VERSION}, found another in {path}.")
    return _from_tree(found, path)


def _from_tree(found: dict[str, Any], path: Path) -> LabelSettings:
    known = {field.name: field for field in fields(LabelSettings)}
    for name in found:
        if name not in known:
            raise InvalidRun(f"Expected only settings of a run in {path}, found {name!r}.")
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
              for name, value in found.items()}  # fmt: skip
    try:
        return LabelSettings(**values)
    except TypeError as error:
        raise InvalidRun(f"Expected all settings of a run in {path}, found {error}.") from None


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # JSON's strings are TOML's, but for the one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    assert isinstance(value, tuple)
    return "[" + ", ".join(_toml(entry) for entry in value) + "]"
