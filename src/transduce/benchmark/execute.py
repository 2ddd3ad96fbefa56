"""Execute a suite's plan: group by group, tuned first, chunk by chunk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from transduce.benchmark.evaluation import Chunk, Records, bounds, episode, evaluate_chunk
from transduce.benchmark.executors import BenchExecutor
from transduce.benchmark.labeled_features import LabeledFeatures
from transduce.benchmark.plan import RunGroup, SuitePlan
from transduce.benchmark.provenance import Provenance, machine, versions
from transduce.benchmark.results import Result, ResultFolder, SuiteShard
from transduce.benchmark.run import Run, settings_of
from transduce.benchmark.suite import Cell
from transduce.benchmark.tuning import Tuning, tune, tuning_key
from transduce.errors import InvalidSetting, InvalidTask, TransduceError, UnknownName

Load = Callable[[str, str, set[str]], LabeledFeatures]  # dataset, encoder, splits
Tell = Callable[[str], None]
Advance = Callable[[int], None]


@dataclass
class SuiteOutcome:
    """Results by run id, and why other runs have none."""

    results: dict[str, Result] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    computed: int = 0  # tasks evaluated now, rather than read

    def result_of(self, cell: Cell) -> Result | None:
        """Return the result of a cell's run; None if there is none."""
        return None if cell.run is None else self.results.get(cell.run.id)

    def reason_of(self, cell: Cell) -> str:
        """Return why a cell is empty; nothing if it is not."""
        return cell.reason if cell.run is None else self.reasons.get(cell.run.id, "")


@dataclass(frozen=True)
class PendingRun:
    """What is left of a run for this shard, and what its parts say beside their tasks."""

    run: Run
    tuning: Tuning | None
    provenance: Provenance
    chunks: list[Chunk]


@dataclass(frozen=True)
class Session:
    """What all steps of an execution share."""

    executor: BenchExecutor
    folder: ResultFolder
    plan: SuitePlan
    outcome: SuiteOutcome
    tell: Tell
    advance: Advance

    def run_group(self, group: RunGroup, load: Load) -> None:
        """Read what is there, then load the features and compute the rest."""
        missing = []
        for run in group.runs:
            result = self.folder.read(run)
            if result is None:
                missing.append(run)
            else:
                self.outcome.results[run.id] = result
                self.advance(run.tasks)
        if not missing:
            return
        try:
            features = load(group.dataset, group.encoder, group.splits)
        except TransduceError as error:
            for run in missing:
                self._leave_out(run, error)
            return
        self._compute(features, missing)

    def _compute(self, features: LabeledFeatures, runs: list[Run]) -> None:
        """Tune every run, then evaluate the missing chunks of all of them together."""
        pending = {run.id: left for run in runs if (left := self._pending(features, run))}
        remaining = {run_id: len(left.chunks) for run_id, left in pending.items()}
        for left in pending.values():
            if not left.chunks:
                self._finish(left)
        chunks = [chunk for left in pending.values() for chunk in left.chunks]
        for index, records in self.executor.run(evaluate_chunk, features, chunks):
            chunk = chunks[index]
            left = pending[chunk.run.id]
            self.folder.write_part(chunk.run, chunk.start, chunk.stop, records, left.provenance)
            self.outcome.computed += len(records)
            self.advance(len(records))
            remaining[chunk.run.id] -= 1
            if not remaining[chunk.run.id]:
                self._finish(left)

    def _pending(self, features: LabeledFeatures, run: Run) -> PendingRun | None:
        """Return what is left of a run; None, with the reason kept, if it cannot be drawn."""
        try:
            episode(features, run, 0)
            if run.protocol.share_with_shots < 1:
                evaluate_chunk(features, Chunk(run, run.build(), 0, 1))
        except (InvalidSetting, InvalidTask, UnknownName) as error:
            self._leave_out(run, error)
            return None
        done = self.folder.parts_of(run)
        self.advance(sum(len(records) for records, _ in done.values()))
        missing = [at for at in bounds(run.tasks) if at[0] not in done]
        numbers = self.plan.chunk_numbers
        mine = [at for at in missing if self.folder.shard.has(numbers[run.id, at[0]])]
        tuning = self._tune(run, features) if run.tuned and (mine or not missing) else None
        method = run.build(**({} if tuning is None else tuning.chosen))
        ran_on = {**machine(), "executor": self.executor.name, "workers": self.executor.workers}
        provenance = Provenance(settings_of(method), versions(), ran_on)
        return PendingRun(run, tuning, provenance, [Chunk(run, method, *at) for at in mine])

    def _tune(self, run: Run, features: LabeledFeatures) -> Tuning:
        """Return the stored tuning of a run, or tune it and store that."""
        key = tuning_key(run)
        tuning = self.folder.read_tuning(key)
        if tuning is None:
            where = f"{run.dataset}, {run.encoder}"
            self.tell(f"Tuning {run.method} ({run.space}, {run.protocol.shots}-shot) on {where}")
            tuning = tune(run, features, lambda chunks: self._in_order(features, list(chunks)))
            self.folder.write_tuning(key, tuning)
        return tuning

    def _in_order(self, features: LabeledFeatures, chunks: list[Chunk]) -> list[Records]:
        done = dict(self.executor.run(evaluate_chunk, features, chunks))
        return [done[index] for index in range(len(chunks))]

    def _leave_out(self, run: Run, error: TransduceError) -> None:
        self.outcome.reasons[run.id] = str(error)
        self.advance(run.tasks)

    def _finish(self, left: PendingRun) -> None:
        """Assemble the result; do nothing in a sharded run."""
        if not self.folder.shard.whole:
            return
        result = self.folder.finish(left.run, left.tuning)
        if result is not None:
            self.outcome.results[left.run.id] = result


def execute_suite(
    plan: SuitePlan,
    out: Path,
    executor: BenchExecutor,
    load: Load,
    *,
    shard: SuiteShard | None = None,
    fresh: bool = False,
    tell: Tell = lambda line: None,
    advance: Advance = lambda tasks: None,
) -> SuiteOutcome:
    """Compute every run of the plan that has no result in `out` yet, and read the others.

    Parameters
    ----------
    plan : SuitePlan
        From `plan_suite`.
    out : Path
        Folder of results.
    executor : BenchExecutor
        From `make_executor`.
    load : callable
        Function of (dataset, encoder, splits) that returns the features.
    shard : SuiteShard, optional
        Compute only the chunks of this share, and leave their parts for a run without shard.
    fresh : bool
        Remove the results of these runs first.
    tell, advance : callable
        Called with lines for the user, and with the number of tasks done.
    """
    from transduce.features.planning import lock  # here: it takes the image readers along

    folder = ResultFolder(out, shard)
    session = Session(executor, folder, plan, SuiteOutcome(), tell, advance)
    with lock(folder.work):
        for run in plan.runs if fresh else ():
            folder.forget(run)
        for group in plan.groups:
            session.run_group(group, load)
    return session.outcome


def stored_results(plan: SuitePlan, out: Path) -> SuiteOutcome:
    """Return the results that are in `out` already, without computing anything."""
    folder, outcome = ResultFolder(out), SuiteOutcome()
    for run in plan.runs:
        result = folder.read(run)
        if result is None:
            outcome.reasons[run.id] = "not computed yet"
        else:
            outcome.results[run.id] = result
    return outcome
