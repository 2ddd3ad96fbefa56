"""A dict of named things that suggests the nearest name when asked for an unknown one."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from transduce.errors import UnknownName

Entry = TypeVar("Entry")


class Catalogue(Mapping[str, Entry]):
    """A read-only dict of entries by name; an unknown name is answered with the nearest one."""

    def __init__(self, kind: str, entries: Mapping[str, Entry]) -> None:
        self._kind = kind
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownName(self._kind, name, self._entries) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<{self._kind}s: {', '.join(self)}>"
