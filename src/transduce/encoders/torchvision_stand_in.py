"""open_clip and transformers where torchvision is broken or absent: they import it, models do not.

A torchvision made for another torch fails at its import: it registers shape functions for operators
that only its compiled part, which does not load, defines ("operator torchvision::nms does not
exist", pytorch issue 157648). Everything in Python works without them. Where torchvision cannot be
imported at all, open_clip gets modules of empty classes for the time of its own import: it needs
torchvision for transforms of images alone, and ours are in PIL and NumPy.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

NAMES = (
    "torchvision",
    "torchvision.ops",
    "torchvision.ops.misc",
    "torchvision.transforms",
    "torchvision.transforms.functional",
)


def import_torchvision() -> bool:
    """Import torchvision, if need be without its operators; returns whether it is there."""
    if "torchvision" in sys.modules:
        return True
    if find_spec("torchvision") is None:
        return False
    try:
        with _without_unknown_operators():
            import torchvision  # noqa: F401
    except Exception:  # whatever is wrong with it, it is not what the user asked for
        _forget()
        return False
    return True


@contextlib.contextmanager
def torchvision_or_stand_in() -> Iterator[None]:
    """Let an import of torchvision in the block succeed, whatever is installed."""
    if import_torchvision():
        yield
        return
    with contextlib.suppress(ImportError):
        import transformers  # noqa: F401 (open_clip imports it: it is to see that there is none)
    for name in NAMES:
        module = _StandIn(name)
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    try:
        yield
    finally:
        _forget()  # nobody else is to take it for the library


@contextlib.contextmanager
def _without_unknown_operators() -> Iterator[None]:
    """Leave out the shape functions of operators of torchvision that are not there."""
    import torch

    register = torch.library.register_fake

    def register_known(operator: Any, *given: Any, **options: Any) -> Any:  # noqa: ANN401
        decorate = register(operator, *given, **options)
        if not str(operator).startswith("torchvision::"):
            return decorate

        def attempt(function: Callable[..., Any]) -> Any:  # noqa: ANN401
            try:
                return decorate(function)
            except RuntimeError:
                return function

        return attempt

    torch.library.register_fake = register_known
    try:
        yield
    finally:
        torch.library.register_fake = register


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]


class _Empty(type):
    """A class whose every attribute is another such class, as enumerations have members."""

    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Empty(name, (), {})
        setattr(cls, name, made)
        return made


class _StandIn(ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_Empty("torchvision", (), {}), name)
