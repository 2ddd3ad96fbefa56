"""Methods of other packages, found by the entry points that they declare.

A package names its method class in the group `transduce.methods`, under the method's own name:

    [project.entry-points."transduce.methods"]
    my-method = "my_package:MyMethod"

The method then appears in `METHODS`, and so in `transduce list`, `bench` and `label --method`.
`transduce.testing.check_method(MyMethod)` runs the contract tests on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from transduce.catalogue import Catalogue
from transduce.errors import TransduceError, UnknownName
from transduce.methods.method import Method

GROUP = "transduce.methods"
AUTO, DEFAULT = "auto", "anchored"  # the first is another name of the second, and not listed
ATTRIBUTES = ("name", "spaces", "support", "inductive", "grid", "predict")


class MethodUnavailable(TransduceError, ImportError):
    """A method of another package cannot be used; the message names the package and the reason."""


class MethodCatalogue(Catalogue[type[Method]]):
    """The methods by name: those of this package, then those that other packages declare.

    Other packages are looked for when a name is not one of this package's, or when all methods are
    listed, and imported when one is asked for or all are listed. A method that cannot be
    imported is left out of the list; asking for it by name raises `MethodUnavailable`. No
    package can replace a method of this one. The name "auto" means the default method.

    Examples
    --------
    >>> from transduce import METHODS
    >>> METHODS["em-dirichlet"](classes_present="all").max_iter
    20
    >>> "zero-shot" in METHODS
    True
    """

    def __getitem__(self, name: str) -> type[Method]:
        name = DEFAULT if name == AUTO else name
        if name in self._entries:
            return self._entries[name]
        if name in _declared():
            return _load(name)
        raise UnknownName(self._kind, name, [*self._entries, *_declared()])

    def __iter__(self) -> Iterator[str]:
        yield from self._entries
        for name in _declared():
            if name not in self._entries and not _reason(name):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name == AUTO or name in self._entries or any(name == known for known in self)

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Reason why a declared method cannot be used, by its name."""
        reasons = {
            name: f"{_package(entry)} cannot replace a method of transduce"
            if name in self._entries
            else _reason(name)
            for name, entry in _declared().items()
        }
        return {name: reason for name, reason in reasons.items() if reason}


@cache
def _declared() -> dict[str, EntryPoint]:
    """Entry points by name; of two packages with one name, the first in the alphabet counts."""
    known = sorted(entry_points(group=GROUP), key=_package, reverse=True)
    return {entry.name: entry for entry in known}


def _package(entry: EntryPoint) -> str:
    return "an unnamed package" if entry.dist is None else f"package {entry.dist.name}"


@cache
def _load(name: str) -> type[Method]:
    entry = _declared()[name]
    try:
        method = entry.load()
    except Exception as error:  # whatever a stranger's module raises on import
        raise _unavailable(entry, f"{type(error).__name__}: {error}") from error
    if not isinstance(method, type) or not is_dataclass(method):
        raise _unavailable(entry, f"{entry.value} is no dataclass")
    missing = [attribute for attribute in ATTRIBUTES if not hasattr(method, attribute)]
    if missing:
        raise _unavailable(entry, f"{entry.value} has no {', '.join(missing)}")
    if method.name != name:  # type: ignore[attr-defined]
        raise _unavailable(entry, f"{entry.value}.name is {method.name!r}")  # type: ignore[attr-defined]
    return method  # type: ignore[return-value]


def _unavailable(entry: EntryPoint, reason: str) -> MethodUnavailable:
    return MethodUnavailable(
        f"Expected a method {entry.name!r} in {_package(entry)}, found {reason}; repair or "
        "uninstall the package."
    )


@cache
def _reason(name: str) -> str:
    """Return why a declared method cannot be loaded; "" if it can."""
    try:
        _load(name)
    except MethodUnavailable as error:
        return str(error)
    return ""
