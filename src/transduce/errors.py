"""What can go wrong, each as its own type: catch one, or catch `TransduceError` for all."""

from collections.abc import Iterable
from difflib import get_close_matches


class TransduceError(Exception):
    """Any error this library raises on purpose."""


class InvalidTask(TransduceError, ValueError):
    """The arrays of a task contradict each other or the method; nothing was computed."""


class InvalidSetting(TransduceError, ValueError):
    """A method was given a value it cannot work with."""


class UnknownName(TransduceError, KeyError):
    """A catalogue has no such entry; the message names the nearest one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(str(name), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        super().__init__(f"Expected a {kind}, found {name!r}{hint} Known: {', '.join(names)}.")

    def __str__(self) -> str:  # KeyError would print the repr, with its quotes
        return str(self.args[0])


class MissingExtra(TransduceError, ImportError):
    """An optional dependency is not installed; the message is the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs an extra: pip install "transduce[{extra}]"')


class InvalidFile(TransduceError, ValueError):
    """A file is not what it was taken for; nothing of it was used."""
