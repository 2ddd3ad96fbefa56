"""Executors: chunks are evaluated in this process, processes of this machine, or by Ray."""

from collections.abc import Callable

from transduce.benchmark.executors.executor import BenchExecutor
from transduce.benchmark.executors.joblib import JoblibExecutor
from transduce.benchmark.executors.ray import RayExecutor
from transduce.benchmark.executors.serial import SerialExecutor
from transduce.catalogue import Catalogue
from transduce.errors import InvalidSetting

# From the number of workers and the address of a cluster.
EXECUTORS: Catalogue[Callable[[int, str | None], BenchExecutor]] = Catalogue(
    "executor",
    {
        "serial": lambda workers, address: SerialExecutor(),
        "joblib": lambda workers, address: JoblibExecutor(workers),
        "ray": RayExecutor,
    },
)


def make_executor(name: str, *, workers: int = 0, address: str | None = None) -> BenchExecutor:
    """Return the executor of this name; `workers` 0 is one for each core."""
    if address is not None and name != "ray":
        raise InvalidSetting(f"Expected --address with the ray executor, found it with {name}.")
    return EXECUTORS[name](workers, address)


__all__ = ["EXECUTORS", "BenchExecutor", "make_executor"]
