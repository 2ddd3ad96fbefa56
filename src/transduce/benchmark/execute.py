"""A suite from its plan to its results: column by column, tuned first, chunk by chunk."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from transduce.benchmark.evaluation import Chunk, Records, bounds, episode, evaluate
from transduce.benchmark.executors import Executor
from transduce.benchmark.results import Result, ResultFolder, Shard, machine, versions
from transduce.benchmark.run import Run, settings_of
from transduce.benchmark.suite import Cell, Suite
from transduce.benchmark.tuning import tune, tuning_key
from transduce.errors import InvalidSetting, TransduceError
from transduce.features.labelled import LabelledFeatures

Load = Callable[[str, str], LabelledFeatures]
Tell = Callable[[str], None]
Advance = Callable[[int], None]


@dataclass
class Outcome:
    """Results by run id, and why others have none."""

    results: dict[str, Result] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # by run id
    computed: int = 0  # tasks evaluated now, rather than found

    def result_of(self, cell: Cell) -> Result | None:
        return None if cell.run is None else self.results.get(cell.run.id)

    def reason_of(self, cell: Cell) -> str:
        return cell.reason if cell.run is None else self.reasons.get(cell.run.id, "")


@dataclass(frozen=True)
class Session:
    """What all parts of an execution share."""

    executor: Executor
    folder: ResultFolder
    outcome: Outcome
    tell: Tell
    advance: Advance

    def run_chunks(
        self, features: LabelledFeatures, chunks: list[Chunk]
    ) -> Iterator[tuple[Chunk, Records]]:
        for place, records in self.executor.run(evaluate, features, chunks):
            yield chunks[place], records

    def tune(self, run: Run, features: LabelledFeatures) -> dict[str, Any] | None:
        if not run.tuned:
            return None
        key = tuning_key(run)
        found = self.folder.read_tuning(key)
        if found is None:
            found = tune(run, features, lambda chunks: self._in_order(features, list(chunks)))
            self.folder.write_tuning(key, found)
        return found

    def _in_order(self, features: LabelledFeatures, chunks: list[Chunk]) -> list[Records]:
        done = dict(self.executor.run(evaluate, features, chunks))
        return [done[place] for place in range(len(chunks))]


def execute(
    suite: Suite,
    out: Path,
    executor: Executor,
    load: Load,
    *,
    shard: Shard | None = None,
    fresh: bool = False,
    tell: Tell = lambda line: None,
    advance: Advance = lambda tasks: None,
) -> Outcome:
    """Every run of the suite that is not there yet; what exists is read, not repeated."""
    from transduce.features.planning import lock  # here: it takes the image readers along

    folder = ResultFolder(out, shard)
    session = Session(executor, folder, Outcome(), tell, advance)
    numbers = chunk_numbers(suite)
    with lock(folder.work):
        for (dataset, encoder), runs in runs_by_features(suite):
            if fresh:
                for run in runs:
                    folder.forget(run)
            _column(session, lambda d=dataset, e=encoder: load(d, e), runs, numbers)
    return session.outcome


def runs_by_features(suite: Suite) -> list[tuple[tuple[str, str], list[Run]]]:
    """The different runs of a suite, grouped by what they need to have loaded."""
    every = {cell.run.id: cell.run for cell in suite.cells() if cell.run is not None}
    by_features = sorted(every.values(), key=lambda run: (run.dataset, run.encoder))
    grouped = groupby(by_features, key=lambda run: (run.dataset, run.encoder))
    return [(features, list(runs)) for features, runs in grouped]


def chunk_numbers(suite: Suite) -> dict[tuple[str, int], int]:
    """A number for every chunk of the suite, the same on every machine: shards go by it."""
    chunks = [
        (run.id, start)
        for _, runs in runs_by_features(suite)
        for run in runs
        for start, _ in bounds(run.tasks)
    ]
    return {chunk: number for number, chunk in enumerate(chunks)}


def _column(
    session: Session,
    load: Callable[[], LabelledFeatures],
    runs: list[Run],
    numbers: dict[tuple[str, int], int],
) -> None:
    """All runs on one dataset and encoder."""
    folder, outcome = session.folder, session.outcome
    waiting = []
    for run in runs:
        result = folder.read(run)
        if result is None:
            waiting.append(run)
        else:
            outcome.results[run.id] = result
            session.advance(run.tasks)
    if not waiting:
        return
    try:
        features = load()
    except TransduceError as error:
        for run in waiting:
            outcome.reasons[run.id] = str(error)
            session.advance(run.tasks)
        return
    _evaluate(session, features, waiting, numbers)


def _evaluate(
    session: Session,
    features: LabelledFeatures,
    runs: list[Run],
    numbers: dict[tuple[str, int], int],
) -> None:
    folder, outcome = session.folder, session.outcome
    chunks: list[Chunk] = []
    heads: dict[str, dict[str, Any]] = {}
    tunings: dict[str, dict[str, Any] | None] = {}
    for run in runs:
        try:
            episode(features, run, 0)
        except InvalidSetting as error:
            outcome.reasons[run.id] = str(error)
            session.advance(run.tasks)
            continue
        done = folder.parts_of(run)
        session.advance(sum(len(records) for records, _ in done.values()))
        missing = [(start, stop) for start, stop in bounds(run.tasks) if start not in done]
        mine = [at for at in missing if folder.shard.has(numbers[run.id, at[0]])]
        tunings[run.id] = session.tune(run, features) if mine or not missing else None
        method = run.build(**(tunings[run.id] or {}).get("chosen", {}))
        heads[run.id] = _head(session.executor, settings_of(method))
        chunks += [Chunk(run, method, start, stop) for start, stop in mine]
    left = {run_id: sum(chunk.run.id == run_id for chunk in chunks) for run_id in heads}
    by_id = {run.id: run for run in runs}
    for run_id, count in left.items():
        if not count:
            _finish(session, by_id[run_id], tunings[run_id])
    for chunk, records in session.run_chunks(features, chunks):
        run_id = chunk.run.id
        folder.write_part(chunk.run, chunk.start, chunk.stop, records, heads[run_id])
        outcome.computed += len(records)
        session.advance(len(records))
        left[run_id] -= 1
        if not left[run_id]:
            _finish(session, chunk.run, tunings[run_id])


def _finish(session: Session, run: Run, tuning: dict[str, Any] | None) -> None:
    """A shard leaves its parts to the run that sees all of them."""
    if not session.folder.shard.whole:
        return
    result = session.folder.finish(run, tuning)
    if result is not None:
        session.outcome.results[run.id] = result


def _head(executor: Executor, settings: dict[str, Any]) -> dict[str, Any]:
    """What the parts of a run say beside their tasks."""
    ran_on = {**machine(), "executor": executor.name, "workers": executor.workers}
    return {"settings": settings, "versions": versions(), "machine": ran_on}
