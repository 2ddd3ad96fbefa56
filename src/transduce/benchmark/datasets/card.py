"""A dataset's card: where its files lie, what they must add up to, and where to get them.

A card is one TOML file in `cards/`. Paths are those of CoOp's DATASETS.md, so that a data folder
made for any of the prompt-learning repositories is read as it is.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from transduce.errors import InvalidDataset, UnknownName
from transduce.machine.atomic import from_plain

Layout = Literal["coop-json", "fgvc-lists", "imagenet-folders"]
SPLITS = ("train", "val", "test")


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file to get, and what it becomes.

    Without `url` it takes a person: an account, a license to accept, a page to click through.
    """

    file: str
    target: str  # what it becomes, below the dataset's folder; "." for the folder itself
    takes: tuple[str, ...] = ()  # folder of an archive; all but the last are archives within it
    url: str = ""
    page: str = ""
    size: str = ""
    md5: str = ""  # as published, by its authors or torchvision; empty: none is known
    note: str = ""
    dead: tuple[str, ...] = ()  # addresses still cited that no longer answer


@dataclass(frozen=True, kw_only=True)
class Card:
    """One dataset. `index` lists the images or the classes, as the layout has it."""

    name: str
    title: str
    layout: Layout
    folder: str  # below the data root
    images: str  # below the folder; the paths of the samples start here
    index: str
    needs: tuple[str, ...]  # what must be in the folder
    template: str
    class_names: str  # where they come from
    classes: int
    counts: Mapping[str, int]  # images of each split
    homepage: str
    license: str
    downloads: tuple[Download, ...] = ()
    note: str = ""


class Cards(Mapping[str, Card]):
    """The cards by name, each read when it is first asked for."""

    def __init__(self) -> None:
        self._folder = resources.files("transduce.benchmark.datasets") / "cards"
        files = (entry.name for entry in self._folder.iterdir())
        self._names = sorted(name[:-5] for name in files if name.endswith(".toml"))
        self._read: dict[str, Card] = {}

    def __getitem__(self, name: str) -> Card:
        if name not in self._names:
            raise UnknownName("dataset (or folder:PATH)", name, self._names)
        if name not in self._read:
            text = (self._folder / f"{name}.toml").read_text(encoding="utf-8")
            self._read[name] = parse_card(name, text)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def parse_card(name: str, text: str) -> Card:
    """Return the card in a TOML text; unknown and missing entries are refused."""
    where = f"card {name}.toml"
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidDataset(f"Expected TOML in the {where}, found: {error}.") from None
    data["downloads"] = tuple(
        from_plain(
            Download, entry, f"download of the {where}", refuse_unknown=True, error=InvalidDataset
        )
        for entry in data.get("downloads", ())
    )
    card = from_plain(
        Card, {"name": name, **data}, where, refuse_unknown=True, error=InvalidDataset
    )
    unknown = sorted(set(card.counts) - set(SPLITS))
    if unknown or "test" not in card.counts:
        raise InvalidDataset(
            f"Expected counts of test, and of train and val, in the {where}, "
            f"found {', '.join(card.counts) or 'none'}."
        )
    if "{}" not in card.template:
        raise InvalidDataset(
            f"Expected {{}} in the template of the {where}, found {card.template!r}."
        )
    return card


CARDS = Cards()
