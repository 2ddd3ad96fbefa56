"""`Anchored`, the default method: method.py reads like docs/anchored.md; beside it, its parts."""

from transduce.methods.anchored.method import Anchored

__all__ = ["Anchored"]
