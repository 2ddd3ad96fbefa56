"""The plan of a suite: its different runs, by the features they need, and numbered chunks."""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from transduce.benchmark.evaluation import bounds
from transduce.benchmark.run import Run
from transduce.benchmark.suite import Suite
from transduce.benchmark.tuning import SPLIT


@dataclass(frozen=True)
class RunGroup:
    """Runs on the features of one dataset by one encoder, which are loaded once."""

    dataset: str
    encoder: str
    runs: tuple[Run, ...]

    @property
    def splits(self) -> set[str]:
        """Splits that the runs draw from."""
        splits = {run.query_split for run in self.runs}
        splits |= {run.support_split for run in self.runs if run.protocol.shots}
        return splits | ({SPLIT} if any(run.tuned for run in self.runs) else set())


@dataclass(frozen=True)
class SuitePlan:
    """All runs of a suite, each once, in the order in which they are computed."""

    groups: tuple[RunGroup, ...]

    @property
    def runs(self) -> list[Run]:
        """Runs of all groups."""
        return [run for group in self.groups for run in group.runs]

    @cached_property
    def chunk_numbers(self) -> dict[tuple[str, int], int]:
        """Number of each chunk (run id, first task): the same on every machine, for shards."""
        chunks = [(run.id, start) for run in self.runs for start, _ in bounds(run.tasks)]
        return {chunk: number for number, chunk in enumerate(chunks)}


def plan_suite(suite: Suite) -> SuitePlan:
    """Return the runs of the suite's cells, each once, grouped by dataset and encoder."""
    by_id = {cell.run.id: cell.run for cell in suite.cells() if cell.run is not None}
    ordered = sorted(by_id.values(), key=lambda run: (run.dataset, run.encoder))
    grouped = groupby(ordered, key=lambda run: (run.dataset, run.encoder))
    return SuitePlan(tuple(RunGroup(*names, tuple(runs)) for names, runs in grouped))
