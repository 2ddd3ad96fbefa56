"""Evaluate a method on a slice of a run's tasks; executors decide in which process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from transduce.benchmark.episodes import Episode, sample
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.benchmark.metrics import METRICS, TaskValue
from transduce.benchmark.run import Run
from transduce.errors import InvalidFile
from transduce.methods import Method
from transduce.methods.method import without_convergence_warnings
from transduce.simplex.threads import one_blas_thread, single_thread
from transduce.task import Space, Task

CHUNK = 25  # tasks: enough to make up for sending them, few enough to lose with a worker
REQUIRED = ("correct", "queries", "iterations", "seconds")
FORMER_NAMES = {"recall": "mean_per_class_recall"}  # of columns, in results of earlier versions


@dataclass(frozen=True)
class Chunk:
    """Tasks `start` to `stop` of a run, with the method as it was tuned."""

    run: Run
    method: Method
    start: int
    stop: int


@dataclass(frozen=True)
class Records:
    """Per-task results of a run, one named column for each quantity.

    Parameters
    ----------
    columns : mapping of str to tuple
        Values in the order of the tasks. `correct`, `queries`, `iterations` and `seconds` are
        always there; the metrics of `METRICS` are, if they existed when the run was computed.
    """

    columns: Mapping[str, tuple[Any, ...]]

    def __post_init__(self) -> None:
        names = {FORMER_NAMES.get(name, name): values for name, values in self.columns.items()}
        object.__setattr__(self, "columns", names)
        missing = [name for name in REQUIRED if name not in names]
        if missing:
            raise InvalidFile(f"Expected a column {missing[0]} of the tasks, found none.")
        if len({len(values) for values in names.values()}) != 1:
            raise InvalidFile("Expected columns of the tasks alike, found different lengths.")

    @classmethod
    def of_tasks(cls, tasks: Sequence[Mapping[str, TaskValue]]) -> "Records":
        """Return the columns of these tasks, at least one."""
        return cls({name: tuple(task[name] for task in tasks) for name in tasks[0]})

    @classmethod
    def join(cls, parts: Sequence["Records"]) -> "Records":
        """Return the tasks of all parts; a column is kept if every part has it."""
        shared = [n for n in parts[0].columns if all(n in part.columns for part in parts)]
        return cls({name: sum((part.columns[name] for part in parts), ()) for name in shared})

    def __len__(self) -> int:
        return len(self.columns["correct"])

    @property
    def accuracies(self) -> list[float]:
        """Accuracy of each task, 0 to 1."""
        pairs = zip(self.columns["correct"], self.columns["queries"], strict=True)
        return [correct / queries for correct, queries in pairs]


def bounds(tasks: int) -> list[tuple[int, int]]:
    """Return where chunks begin and end; the same for every process that works on a run."""
    return [(start, min(start + CHUNK, tasks)) for start in range(0, tasks, CHUNK)]


def evaluate_chunk(features: LabeledFeatures, chunk: Chunk) -> Records:
    """Return the records of the chunk's tasks; in one thread, so that all executors round alike."""
    with single_thread(), one_blas_thread(0), without_convergence_warnings():
        indices = range(chunk.start, chunk.stop)
        episodes = (episode(features, chunk.run, index) for index in indices)
        return Records.of_tasks([_evaluate_task(drawn, chunk.method) for drawn in episodes])


def episode(features: LabeledFeatures, run: Run, index: int) -> Episode:
    """Return episode number `index` of a run, in the run's feature space."""
    space: Space = "probability" if run.space == "probability" else "embedding"
    drawn = sample(
        features,
        run.protocol,
        index,
        seed=run.seed,
        space=space,
        temperature=run.temperature,
        query_split=run.query_split,
        support_split=run.support_split,
    )
    if run.space == "similarity":
        return replace(drawn, task=_similarities(drawn.task))
    return drawn


def _similarities(task: Task) -> Task:
    """Return the task with cosines to the classes as features; clusters vote as in zero-shot."""
    assert task.class_embeddings is not None
    texts = task.class_embeddings.T
    return replace(
        task,
        query=task.query @ texts,
        support=None if task.support is None else task.support @ texts,
        class_embeddings=None,
    )


def _evaluate_task(drawn: Episode, method: Method) -> dict[str, TaskValue]:
    """Return the value of every column for one task."""
    start = perf_counter()
    prediction = method.predict(drawn.task)
    seconds = perf_counter() - start
    metrics = {
        name: metric.of_task(prediction, drawn.labels, drawn.task)
        for name, metric in METRICS.items()
    }
    return {
        "correct": int((prediction.labels == drawn.labels).sum()),
        "queries": len(drawn.labels),
        **metrics,
        "iterations": prediction.trace.iterations,
        "seconds": float(f"{seconds:.3g}"),
    }
