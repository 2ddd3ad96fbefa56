"""Results on disk: one JSON a run; parts of unfinished runs beside them, so that nothing is lost.

    OUT/runs/RUN.json                       finished
    OUT/work/parts/RUN/00025-00050.json     tasks 25 to 49 of an unfinished run
    OUT/work/tuning/....json                settings chosen on validation tasks
    OUT/work-3-of-16/...                    the same, of one shard: copy these folders together

Every file appears at once or not at all. A shard only writes parts; the run without a shard puts
all parts together, and computes those that are missing.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeVar

from transduce.benchmark.evaluation import Records, bounds
from transduce.benchmark.metrics import METRICS, TaskValue, mean_and_interval
from transduce.benchmark.provenance import Provenance
from transduce.benchmark.run import Run
from transduce.benchmark.tuning import Tuning
from transduce.errors import InvalidFile, InvalidSetting, TransduceError
from transduce.machine.atomic import from_plain, read_json, replace_text, to_plain

REMOVE = "remove it, and it is computed again"
Stored = TypeVar("Stored")


@dataclass(frozen=True)
class SuiteShard:
    """Share `number` (from 1) of `total` of the chunks of a suite."""

    number: int = 1
    total: int = 1

    @classmethod
    def parse(cls, text: str) -> "SuiteShard":
        """Return the shard of a text such as 3/16."""
        number, slash, total = text.partition("/")
        if not (slash and number.isdigit() and total.isdigit() and 1 <= int(number) <= int(total)):
            raise InvalidSetting(f"Expected a shard such as 3/16, found {text!r}.")
        return cls(int(number), int(total))

    @property
    def whole(self) -> bool:
        """Whether there is no other shard."""
        return self.total == 1

    def has(self, chunk_number: int) -> bool:
        """Return whether the chunk belongs to this shard."""
        return chunk_number % self.total == self.number - 1

    @property
    def folder(self) -> str:
        """Name of the folder that the shard writes its parts into."""
        return "work" if self.whole else f"work-{self.number}-of-{self.total}"


@dataclass(frozen=True)
class Result:
    """A finished run: what came out of every task, what was tuned, how it was computed."""

    run: Run
    records: Records
    tuning: Tuning | None
    provenance: Provenance

    @property
    def accuracy(self) -> float:
        """Mean accuracy over tasks, 0 to 1."""
        return fmean(self.records.accuracies)

    @property
    def interval(self) -> float | None:
        """Half the width of the 95 % interval of `accuracy`; None if there is one task only."""
        accuracies = self.records.accuracies
        return mean_and_interval(accuracies)[1] if len(accuracies) > 1 else None

    @property
    def seconds(self) -> float:
        """Time of a task, the median: the first task of a process also loads compiled kernels."""
        return median(self.records.columns["seconds"])

    def metric(self, name: str) -> float | None:
        """Return a metric of `METRICS` for the run; None if it was not recorded."""
        values = self.records.columns.get(name)
        return None if values is None else METRICS[name].of_run(values)

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values, with its main numbers first."""
        metrics = {name: self.metric(name) for name in METRICS}
        return {
            "run": self.run.to_json(),
            "accuracy": round(self.accuracy, 6),
            "interval": None if self.interval is None else round(self.interval, 6),
            **{name: round(value, 6) for name, value in metrics.items() if value is not None},
            "seconds_per_task": self.seconds,
            "tuning": to_plain(self.tuning),
            "tasks": dict(self.records.columns),
            **to_plain(self.provenance),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Result":
        """Return the result that `to_json` wrote, or an earlier version of it."""
        run = Run.from_json(data.get("run", {}))
        records, provenance = _part(data)
        tuning = data.get("tuning")
        tuned = None if tuning is None else from_plain(Tuning, tuning, "tuning")
        return cls(run, records, tuned, provenance)


class ResultFolder:
    """The results and parts under one folder."""

    def __init__(self, folder: Path, shard: SuiteShard | None = None) -> None:
        self.folder = folder
        self.shard = shard or SuiteShard()
        self.work = folder / self.shard.folder

    def path_of(self, run: Run) -> Path:
        """Return the file of a finished run."""
        return self.folder / "runs" / f"{run.id}.json"

    def read(self, run: Run) -> Result | None:
        """Return the finished result of a run; None if it is not there."""
        path = self.path_of(run)
        if not path.exists():
            return None
        result = _read(path, Result.from_json)
        if result.run != run or len(result.records) != run.tasks:
            raise InvalidFile(
                f"Expected the result of {run.id} in {path}, found another; {REMOVE}."
            )
        return result

    def parts_of(self, run: Run) -> dict[int, tuple[Records, Provenance]]:
        """Return the chunks that are done, by their first task."""
        parts = {}
        for start, stop in bounds(run.tasks):
            for folder in self._work_folders():
                path = folder / "parts" / run.id / _part_name(start, stop)
                if start not in parts and path.exists():
                    parts[start] = _read(path, _part)
        return parts

    def write_part(
        self, run: Run, start: int, stop: int, records: Records, provenance: Provenance
    ) -> None:
        """Write the records of tasks `start` to `stop`."""
        path = self.work / "parts" / run.id / _part_name(start, stop)
        _write(path, {**to_plain(provenance), "tasks": dict(records.columns)})

    def finish(self, run: Run, tuning: Tuning | None) -> Result | None:
        """Join the parts of a run into its result; None if some are missing."""
        parts = self.parts_of(run)
        if len(parts) < len(bounds(run.tasks)):
            return None
        ordered = [parts[start] for start, _ in bounds(run.tasks)]
        provenance = ordered[0][1]
        if any(other.settings != provenance.settings for _, other in ordered):
            raise InvalidFile(
                f"Expected all parts of {run.id} with the same settings, found different ones; "
                f"remove {self.folder}/work*/parts/{run.id}."
            )
        result = Result(run, Records.join([records for records, _ in ordered]), tuning, provenance)
        _write(self.path_of(run), result.to_json())
        self._remove_parts(run)
        return result

    def read_tuning(self, key: str) -> Tuning | None:
        """Return what was tuned under this key; None if nothing was."""
        for folder in self._work_folders():
            path = folder / "tuning" / f"{key}.json"
            if path.exists():
                return _read(path, lambda data: from_plain(Tuning, data, "tuning"))
        return None

    def write_tuning(self, key: str, tuning: Tuning) -> None:
        """Write what was tuned under this key."""
        _write(self.work / "tuning" / f"{key}.json", to_plain(tuning))

    def forget(self, run: Run) -> None:
        """Remove the result and the parts of a run."""
        self.path_of(run).unlink(missing_ok=True)
        self._remove_parts(run)

    def _remove_parts(self, run: Run) -> None:
        for folder in self._work_folders():
            shutil.rmtree(folder / "parts" / run.id, ignore_errors=True)

    def _work_folders(self) -> list[Path]:
        """Return where parts may lie: the shard's own folder first, then those of all others."""
        others = sorted(path for path in self.folder.glob("work*") if path != self.work)
        return [self.work, *others]


def _part(data: Mapping[str, Any]) -> tuple[Records, Provenance]:
    """Return what a part and a result have in common."""
    columns = from_plain(dict[str, tuple[TaskValue, ...]], data.get("tasks", {}), "table of tasks")
    return Records(columns), from_plain(Provenance, data, "settings, versions and machine")


def _part_name(start: int, stop: int) -> str:
    return f"{start:05d}-{stop:05d}.json"


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON with a line for each entry: short lists of numbers would fill pages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f" {json.dumps(key)}: {json.dumps(entry, ensure_ascii=False, separators=(',', ':'))}"
        for key, entry in value.items()
    ]
    replace_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _read(path: Path, build: Callable[[dict[str, Any]], Stored]) -> Stored:
    """Return what `build` makes of a JSON file; its refusal names the file and the remedy."""
    try:
        return build(read_json(path, dict))
    except TransduceError as error:
        raise InvalidFile(f"{str(error).rstrip('.')} ({path}; {REMOVE}).") from None
