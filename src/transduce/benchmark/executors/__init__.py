"""Who does the work: this process, processes of this machine, or a Ray cluster."""

from transduce.benchmark.executors.executor import Executor
from transduce.benchmark.executors.joblib import JoblibExecutor
from transduce.benchmark.executors.ray import RayExecutor
from transduce.benchmark.executors.serial import SerialExecutor
from transduce.errors import InvalidSetting, UnknownName

EXECUTORS = ("serial", "joblib", "ray")


def make_executor(name: str, *, workers: int = 0, address: str | None = None) -> Executor:
    """`workers` 0: one for each core."""
    if address is not None and name != "ray":
        raise InvalidSetting(f"Expected --address with the ray executor, found it with {name}.")
    if name == "serial":
        return SerialExecutor()
    if name == "joblib":
        return JoblibExecutor(workers)
    if name == "ray":
        return RayExecutor(workers, address)
    raise UnknownName("executor", name, EXECUTORS)


__all__ = ["EXECUTORS", "Executor", "make_executor"]
