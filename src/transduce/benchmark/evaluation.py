"""The work itself: a slice of a run's tasks, wherever an executor may put it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from time import perf_counter
from typing import Any

from transduce.benchmark import metrics
from transduce.benchmark.episodes import Episode, sample
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.benchmark.run import Run
from transduce.methods import Method
from transduce.methods.method import without_convergence_warnings
from transduce.simplex.threads import one_blas_thread, single_thread
from transduce.task import Space, Task

CHUNK = 25  # tasks: enough to make up for sending them, few enough to lose with a worker


@dataclass(frozen=True)
class Chunk:
    """Tasks `start` to `stop` of a run, with the method as it was tuned."""

    run: Run
    method: Method
    start: int
    stop: int


@dataclass(frozen=True)
class Records:
    """What became of tasks, in their order."""

    correct: tuple[int, ...] = ()
    queries: tuple[int, ...] = ()
    recall: tuple[float, ...] = ()
    iterations: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.correct)

    def __add__(self, other: "Records") -> "Records":
        mine, theirs = vars(self), vars(other)
        return Records(**{name: mine[name] + theirs[name] for name in mine})

    @property
    def accuracies(self) -> list[float]:
        return [hits / of for hits, of in zip(self.correct, self.queries, strict=True)]

    def to_json(self) -> dict[str, list[Any]]:
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_json(cls, found: Mapping[str, list[Any]]) -> "Records":
        records = cls(**{field.name: tuple(found[field.name]) for field in fields(cls)})
        if len({len(values) for values in vars(records).values()}) != 1:
            raise ValueError("lists of different lengths")
        return records


def bounds(tasks: int) -> list[tuple[int, int]]:
    """Where chunks begin and end; the same for everyone who works on a run."""
    return [(start, min(start + CHUNK, tasks)) for start in range(0, tasks, CHUNK)]


def evaluate(features: LabeledFeatures, chunk: Chunk) -> Records:
    """Label each task of the chunk. One thread, so that every executor rounds alike."""
    with single_thread(), one_blas_thread(0), without_convergence_warnings():
        records = Records()
        for index in range(chunk.start, chunk.stop):
            records += _one(episode(features, chunk.run, index), chunk.method)
        return records


def episode(features: LabeledFeatures, run: Run, index: int) -> Episode:
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
    """Cosines with the classes as features; clusters then vote with their zero-shot answers."""
    assert task.class_embeddings is not None
    texts = task.class_embeddings.T
    return replace(
        task,
        query=task.query @ texts,
        support=None if task.support is None else task.support @ texts,
        class_embeddings=None,
    )


def _one(drawn: Episode, method: Method) -> Records:
    start = perf_counter()
    prediction = method.predict(drawn.task)
    seconds = perf_counter() - start
    labels = prediction.labels
    return Records(
        correct=(metrics.correct(labels, drawn.labels),),
        queries=(len(drawn.labels),),
        recall=(round(metrics.mean_per_class_recall(labels, drawn.labels), 6),),
        iterations=(prediction.trace.iterations,),
        seconds=(float(f"{seconds:.3g}"),),
    )
