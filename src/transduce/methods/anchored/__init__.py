"""`Anchored`, the default method: anchored.py reads like docs/anchored.md; beside it, its parts."""

from transduce.methods.anchored.anchored import Anchored

__all__ = ["Anchored"]
