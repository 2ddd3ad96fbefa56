"""A suite from its plan to its results: column by column, tuned first, chunk by chunk."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from transduce.benchmark.evaluation import Chunk, Records, bounds, episode, evaluate
from transduce.benchmark.executors import Executor
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.benchmark.results import Result, ResultFolder, Shard, machine, versions
from transduce.benchmark.run import Run, settings_of
from transduce.benchmark.suite import Cell, Suite
from transduce.benchmark.tuning import SPLIT, tune, tuning_key
from transduce.errors import InvalidSetting, TransduceError, UnknownName

Load = Callable[[str, str, set[str]], LabeledFeatures]  # dataset, encoder, splits
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
        self, features: LabeledFeatures, chunks: list[Chunk]
    ) -> Iterator[tuple[Chunk, Records]]:
        for place, records in self.executor.run(evaluate, features, chunks):
            yield chunks[place], records

    def tune(self, run: Run, features: LabeledFeatures) -> dict[str, Any] | None:
        if not run.tuned:
            return None
        key = tuning_key(run)
        found = self.folder.read_tuning(key)
        if found is None:
            where = f"{run.dataset}, {run.encoder}"
            self.tell(f"Tuning {run.method} ({run.space}, {run.protocol.shots}-shot) on {where}")
            found = tune(run, features, lambda chunks: self._in_order(features, list(chunks)))
            self.folder.write_tuning(key, found)
        return found

    def _in_order(self, features: LabeledFeatures, chunks: list[Chunk]) -> list[Records]:
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
            _column(session, partial(load, dataset, encoder, splits_of(runs)), runs, numbers)
    return session.outcome


def found_results(suite: Suite, out: Path) -> Outcome:
    """What is there already, without computing anything."""
    folder, outcome = ResultFolder(out), Outcome()
    for _, runs in runs_by_features(suite):
        for run in runs:
            result = folder.read(run)
            if result is None:
                outcome.reasons[run.id] = "not computed yet"
            else:
                outcome.results[run.id] = result
    return outcome


def runs_by_features(suite: Suite) -> list[tuple[tuple[str, str], list[Run]]]:
    """The different runs of a suite, grouped by what they need to have loaded."""
    every = {cell.run.id: cell.run for cell in suite.cells() if cell.run is not None}
    by_features = sorted(every.values(), key=lambda run: (run.dataset, run.encoder))
    grouped = groupby(by_features, key=lambda run: (run.dataset, run.encoder))
    return [(features, list(runs)) for features, runs in grouped]


def splits_of(runs: list[Run]) -> set[str]:
    """The splits that these runs draw from."""
    splits = {run.query_split for run in runs}
    splits |= {run.support_split for run in runs if run.protocol.shots}
    return splits | ({SPLIT} if any(run.tuned for run in runs) else set())


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
    load: Callable[[], LabeledFeatures],
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
    features: LabeledFeatures,
    runs: list[Run],
    numbers: dict[tuple[str, int], int],
) -> None:
    """Tune every run, then evaluate the missing chunks of all of them together."""
    plans = [plan for run in runs if (plan := _plan(session, features, run, numbers)) is not None]
    left = {plan.run.id: len(plan.chunks) for plan in plans}
    of_run = {plan.run.id: plan for plan in plans}
    for plan in plans:
        if not plan.chunks:
            _finish(session, plan)
    chunks = [chunk for plan in plans for chunk in plan.chunks]
    for chunk, records in session.run_chunks(features, chunks):
        plan = of_run[chunk.run.id]
        session.folder.write_part(chunk.run, chunk.start, chunk.stop, records, plan.head)
        session.outcome.computed += len(records)
        session.advance(len(records))
        left[chunk.run.id] -= 1
        if not left[chunk.run.id]:
            _finish(session, plan)


@dataclass(frozen=True)
class RunPlan:
    """What is left of a run for this shard, and what its parts say beside their tasks."""

    run: Run
    tuning: dict[str, Any] | None
    head: dict[str, Any]
    chunks: list[Chunk]


def _plan(
    session: Session, features: LabeledFeatures, run: Run, numbers: dict[tuple[str, int], int]
) -> RunPlan | None:
    """None, and the reason kept, if the dataset has too few images for the run's tasks."""
    try:
        episode(features, run, 0)
    except (InvalidSetting, UnknownName) as error:
        session.outcome.reasons[run.id] = str(error)
        session.advance(run.tasks)
        return None
    done = session.folder.parts_of(run)
    session.advance(sum(len(records) for records, _ in done.values()))
    missing = [at for at in bounds(run.tasks) if at[0] not in done]
    mine = [at for at in missing if session.folder.shard.has(numbers[run.id, at[0]])]
    tuning = session.tune(run, features) if mine or not missing else None
    method = run.build(**(tuning or {}).get("chosen", {}))
    head = _head(session.executor, settings_of(method))
    return RunPlan(run, tuning, head, [Chunk(run, method, *at) for at in mine])


def _finish(session: Session, plan: RunPlan) -> None:
    """A shard leaves its parts to the run that sees all of them."""
    if not session.folder.shard.whole:
        return
    result = session.folder.finish(plan.run, plan.tuning)
    if result is not None:
        session.outcome.results[plan.run.id] = result


def _head(executor: Executor, settings: dict[str, Any]) -> dict[str, Any]:
    """What the parts of a run say beside their tasks."""
    ran_on = {**machine(), "executor": executor.name, "workers": executor.workers}
    return {"settings": settings, "versions": versions(), "machine": ran_on}
