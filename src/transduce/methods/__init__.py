"""The catalogue: one published method (or twin pair) per file, one line each here."""

from transduce.catalogue import Catalogue
from transduce.methods.method import Method
from transduce.methods.zero_shot import ZeroShot

METHODS: Catalogue[type[Method]] = Catalogue(
    "method",
    {
        ZeroShot.name: ZeroShot,
    },
)

__all__ = ["METHODS", "Method"]
