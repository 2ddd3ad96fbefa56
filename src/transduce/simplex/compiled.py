"""Import the compiled loops when first needed: numba is 208 MB, for the Dirichlet methods only."""

from importlib import import_module
from typing import Any

from transduce.errors import MissingExtra

NUMBA = ("numba", "llvmlite")


def load_kernels() -> Any:  # noqa: ANN401 (numba infers the types of what is in it)
    """Return `transduce.simplex.kernels`, imported when it is first needed."""
    try:
        return import_module("transduce.simplex.kernels")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NUMBA:
            raise
        raise MissingExtra("The Dirichlet distribution in compiled loops", "dirichlet") from error
