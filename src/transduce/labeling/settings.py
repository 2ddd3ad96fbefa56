"""The settings of a labeling run, the labels it may give, and `run.toml`, which repeats it."""

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Int

from transduce.encoders import DEFAULT_ENCODER
from transduce.encoders.class_names import ClassNames
from transduce.encoders.encoder import RENAMED
from transduce.encoders.prompts import DEFAULT_TEMPLATE
from transduce.errors import InvalidRun, InvalidSetting
from transduce.images.entries import is_url
from transduce.machine.atomic import from_plain

AUTO = "auto"
EVERYTHING = "all"
FROM_STORE = ""  # as the encoder: the one that made the features
FORMAT = "transduce-run"
VERSION = 1

# Beyond these softmax(T cos) is one class alone, or all classes alike, in double precision.
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 10_000.0
MOST_SEED = 2**63 - 1

UNKNOWN = -1  # the class index of an image that is none of the classes
UNKNOWN_LABEL = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSettings:
    """The choices that decide the labels of a run; every field is a line of `run.toml`.

    Parameters
    ----------
    source : str
        Where the images are: a folder, glob, list, archive, table or URL. Empty with `features`.
    classes : tuple of str
        The labels, in the order of every array with a class axis.
    prompts : tuple of str
        What the encoder's sentences call each class, in the same order.
    folder : str
        The folder that relative paths of the other fields start from; by default the working
        folder at the time of the run.
    templates : tuple of str
        Sentences with {} where the prompt goes; their embeddings are averaged. More templates
        help where the images are no everyday photographs.
    encoder : str
        The id of the encoder; empty with `features` for the encoder that made them.
    features : str
        A feature store to read instead of embedding `source`, its folder or a URL that fsspec can
        read; empty for none.
    images : str
        With `features`: where their images are, found by file name, to be shown and reviewed.
    view : str
        The id of another encoder, or features by it of the same images, found by their file names.
        Images are then compared with each other by this encoder, and with class names by `encoder`.
        Empty for none.
    method : str
        `auto`, or a name of `transduce.METHODS`. The steps of `auto` are in docs/labeling.md.
    classes_present : int, "auto" or "all"
        How many of the classes occur in a batch: estimated by default. Give it when it is known.
    iterations : int
        The most steps of a published method, its `max_iter`; 0 for as many as published.
    batch : int or "all"
        How many images are solved jointly. All of them by default; fewer when memory is short.
    support : str
        A folder with a sub-folder of labeled images for each class; empty for none.
    support_from : str
        A CSV (file_name, label) of corrected images of `source`; empty for none.
    allow_unknown : bool
        Label images far from every class `unknown`.
    min_score : float
        Label images with a lower score `unknown`; between 0 (none) and 1.
    truth : str
        A CSV (file_name, label) to compare the labels with, or `folders` where each image lies in
        a folder of the name of its class; empty for none.
    like : str
        A run whose classes, encoder and statistics these images join; empty for none.
    temperature : float
        T of the probability features softmax(T cos). 30 is the paper's.
    seed : int
        Decides which images share a batch, if there is more than one.
    offline : bool
        Download nothing.

    Raises
    ------
    InvalidSetting
        Where a value is of the wrong type or out of its range; the message names the setting.
    """

    source: str
    classes: tuple[str, ...]
    prompts: tuple[str, ...]
    folder: str = ""
    templates: tuple[str, ...] = (DEFAULT_TEMPLATE,)
    encoder: str = DEFAULT_ENCODER
    features: str = ""
    images: str = ""
    view: str = ""
    method: str = AUTO
    classes_present: int | Literal["auto", "all"] = "auto"
    iterations: int = 0
    batch: int | Literal["all"] = "all"
    support: str = ""
    support_from: str = ""
    allow_unknown: bool = False
    min_score: float = 0.0
    truth: str = ""
    like: str = ""
    temperature: float = 30.0
    seed: int = 0
    offline: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = from_plain(
                field.type,  # type: ignore[arg-type]  # annotations are not strings here
                getattr(self, field.name),
                f"setting {field.name}",
                error=InvalidSetting,
            )
            object.__setattr__(self, field.name, value)  # a list given for a tuple, say
        if not 0.0 <= self.min_score <= 1.0:
            raise InvalidSetting(f"Expected --min-score between 0 and 1, found {self.min_score}.")
        if not LEAST_TEMPERATURE <= self.temperature <= MOST_TEMPERATURE:
            raise InvalidSetting(
                f"Expected a temperature between {LEAST_TEMPERATURE:g} and {MOST_TEMPERATURE:g}, "
                f"found {self.temperature}; encoders are trained at about 100."
            )
        if not 0 <= self.seed <= MOST_SEED:
            raise InvalidSetting(
                f"Expected a --seed between 0 and {MOST_SEED:,}, found {self.seed}."
            )
        if self.iterations < 0:
            raise InvalidSetting(
                f"Expected --iterations of at least 1, or 0 for as published, found "
                f"{self.iterations}."
            )
        if isinstance(self.batch, int) and self.batch < 1:
            raise InvalidSetting(f"Expected --batch of at least 1 or all, found {self.batch}.")
        if isinstance(self.classes_present, int) and self.classes_present < 1:
            raise InvalidSetting(
                "Expected --classes-present to be a whole number from 1, auto or all, found "
                f"{self.classes_present}."
            )

    @classmethod
    def of(cls, classes: ClassNames, options: Mapping[str, Any]) -> "LabelSettings":
        """Return the settings of `options` by name; None stands for the default.

        Names that are no setting are left out, so that a command's parameters can be given.
        """
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            name: os.fspath(value) if isinstance(value, Path) else value
            for name, value in options.items()
            if name in known and value is not None
        }
        values |= {"classes": classes.labels, "prompts": classes.prompts}
        return cls(**values)

    def address(self, name: str) -> str | Path:
        """Return a URL of these settings as it is, or else its path."""
        return name if is_url(name) else self.path(name)

    def path(self, name: str) -> Path:
        """Return a path of these settings, whatever the present working folder."""
        return Path(self.folder) / Path(name).expanduser()

    @property
    def names(self) -> ClassNames:
        """The classes with their prompts."""
        return ClassNames.of(self.classes, self.prompts)


def label_names(classes: ClassNames) -> tuple[str, ...]:
    """Return the label of each class index; UNKNOWN, -1, is the index of the last."""
    return (*classes.labels, UNKNOWN_LABEL)


def indices_of(labels: Sequence[str | None], classes: ClassNames) -> Int[np.ndarray, " image"]:
    """Return the class index of each label, UNKNOWN for what is no class."""
    indices: dict[str | None, int] = {label: k for k, label in enumerate(classes.labels)}
    return np.array([indices.get(label, UNKNOWN) for label in labels], dtype=np.int64)


def to_toml(settings: LabelSettings) -> str:
    """Return the text of `run.toml`."""
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
    """Return the settings of a `run.toml`; what is wrong in it is refused by name."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidRun(f"Expected a run.toml, found no {path}; check the path.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidRun(f"Expected TOML in {path}, found {error}.") from None
    if data.pop("format", None) != FORMAT or data.pop("version", None) != VERSION:
        raise InvalidRun(f"Expected a {FORMAT} file of version {VERSION}, found another in {path}.")
    settings = from_plain(LabelSettings, data, str(path), refuse_unknown=True, error=InvalidRun)
    return replace(settings, encoder=RENAMED.get(settings.encoder, settings.encoder))


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
